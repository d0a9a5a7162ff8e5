package protowire

import (
	"bytes"
	"fmt"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// magic begins every envelope.
var magic = []byte("k8s\x00")

// Field numbers of an envelope.
const (
	envelopeTypeMeta        = 1
	envelopeRaw             = 2
	envelopeContentEncoding = 3

	typeMetaAPIVersion = 1
	typeMetaKind       = 2
)

var (
	errContentEncoding = fmt.Errorf("%w: an envelope with a contentEncoding", wire.ErrMalformed)
	errDuplicateRaw    = fmt.Errorf("%w: an envelope with a duplicate raw", wire.ErrMalformed)
	errNoRaw           = fmt.Errorf("%w: an envelope without raw", wire.ErrMalformed)
)

// envelope is a decoded envelope. The zero value stands for a bare object.
type envelope struct {
	apiVersion, kind string
	// raw is nil if the envelope has none.
	raw []byte
}

// isEnvelope reports whether an object has an envelope.
func isEnvelope(data []byte) bool { return bytes.HasPrefix(data, magic) }

// parseEnvelope reads an envelope. With an error it returns the fields that were read before.
func parseEnvelope(data []byte) (envelope, error) {
	var e envelope
	for rest := data[len(magic):]; len(rest) > 0; {
		var t tag
		var value []byte
		var err error
		t, value, rest, err = nextField(rest)
		if err != nil {
			return e, err
		}
		if t.number <= envelopeContentEncoding {
			if err := t.requireBytes("a field of an envelope"); err != nil {
				return e, err
			}
		}
		switch t.number {
		case envelopeTypeMeta:
			err = e.readTypeMeta(value)
		case envelopeRaw:
			if e.raw != nil {
				err = errDuplicateRaw
			}
			e.raw = value
		case envelopeContentEncoding:
			if len(value) > 0 {
				err = errContentEncoding
			}
		}
		if err != nil {
			return e, err
		}
	}
	if e.raw == nil {
		return e, errNoRaw
	}
	return e, nil
}

func (e *envelope) readTypeMeta(data []byte) error {
	for rest := data; len(rest) > 0; {
		var t tag
		var value []byte
		var err error
		t, value, rest, err = nextField(rest)
		if err != nil {
			return err
		}
		switch t.number {
		case typeMetaAPIVersion:
			e.apiVersion = string(value)
			err = t.requireBytes("apiVersion")
		case typeMetaKind:
			e.kind = string(value)
			err = t.requireBytes("kind")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
