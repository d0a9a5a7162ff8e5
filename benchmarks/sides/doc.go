// Package sides has the two libraries that are compared, behind the same few methods, with default
// settings. As a Source of pods, ours is kubeapi and cache.New, and client-go a REST or dynamic
// client and a shared informer. As an Informer of small objects there are ours in three forms and
// client-go's. client-go's limit of five requests a second is off, since waiting is not measured.
package sides
