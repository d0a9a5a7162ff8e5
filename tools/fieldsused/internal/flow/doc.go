// Package flow finds which fields of API objects a program may read.
//
// It follows values through SSA form. Each value of an object's Go type is an object, wherever it
// comes from; a value derived from it has an origin: the object's type and a field path. Functions
// have summaries: what they read of their parameters, and from which parameters their results are
// derived. Summaries are computed until none changes.
//
// The result is conservative. A value that reaches code without a known body escapes: everything
// below its path counts as read, and the place is recorded.
package flow
