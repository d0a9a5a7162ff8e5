// Package local is a source in the program itself, for measurements without a server:
// informers and their handlers. It has no goroutines and adds nothing to what an informer
// costs: all its watches are one channel, and its lists hold pointers to the objects that
// it has anyway. SmallSource has small objects, honours pages, and makes them when they are
// asked for or before, so that making them is no part of a measurement.
package local
