// Package sides has the two that are compared, each behind the same few methods. As a
// Source, ours is kubeapi and cache.New, and client-go a REST or dynamic client and a
// shared informer. As an Informer, of a source that is neither's, there are ours in its
// two forms and client-go's. All are used as a program would use them, with default settings. Options are the same for both (the transform, the index, the encoding),
// except that client-go's limit of five requests a second is off, since waiting is not
// measured.
package sides
