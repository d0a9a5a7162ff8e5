// Package local is a source in the program itself, for what is measured without a server:
// informers and their handlers. It has no goroutines and adds nothing to what an informer
// costs: all its watches are one channel, and its lists hold pointers to the objects that
// it has anyway.
package local
