package cache

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// unread stands for an object that could not be decoded, as a source would make it.
type unread struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	why func() error
}

func (u *unread) DecodeError() error                { return u.why() }
func (u *unread) DeepCopyObject() apiruntime.Object { return u }

var _ Undecoded = (*unread)(nil)

// undecoded is an object of which no more than its identity could be read.
func undecoded(o *object) *unread {
	return &unread{
		TypeMeta: o.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
		why: func() error { return errBoom },
	}
}
