// Package sides has the two that are compared, each behind the same few methods: ours,
// which is kubeapi and cache.New, and client-go, which is a REST or dynamic client and a
// shared informer. Both are used as a program would use them, with default settings. What
// is set is the same for both (the transform, the index, the encoding), except that
// client-go's limit of five requests a second is off, since waiting is not measured.
package sides
