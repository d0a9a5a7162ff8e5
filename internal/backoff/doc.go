// Package backoff computes the pauses before a reflector's requests. It neither waits nor reads a
// clock.
//
// A series of failures has growing pauses. It ends with a watch that worked: one that lived 6 s or
// advanced the version. It also ends when nothing has failed for two minutes.
//
// A stretch is a time in which requests follow each other quickly, because they fail or because
// watches that worked were short. It ends with a watch that lived 10 s. The limits of G13 count the
// requests of a stretch, since a series that each short watch ends would have no limit.
package backoff
