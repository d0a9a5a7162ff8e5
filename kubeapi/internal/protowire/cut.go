package protowire

import (
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Cut copies the wanted fields of a message, including their tags. If only parts of a field are
// wanted, it cuts that message too. Of an envelope it keeps everything but the dropped parts of
// raw: its type shows whether this is the requested object.
//
// A field that is kept whole is not parsed. A wanted field of an invalid wire type is copied, so
// that the decoder refuses the object.
func (encoding) Cut(dst, raw []byte, wanted *wire.Fields, _ wire.Limits) ([]byte, error) {
	if !isEnvelope(raw) {
		return cutMessage(dst, raw, wanted.Numbers)
	}
	dst = append(dst, magic...)
	for rest := raw[len(magic):]; len(rest) > 0; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return dst, err
		}
		field := rest[:len(rest)-len(after)]
		rest = after
		if t != (tag{envelopeRaw, typeBytes}) {
			dst = append(dst, field...)
			continue
		}
		dst, err = cutMessageField(dst, field, value, wanted.Numbers)
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func cutMessage(dst, message []byte, wanted *wire.Numbers) ([]byte, error) {
	for rest := message; len(rest) > 0; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return dst, err
		}
		field := rest[:len(rest)-len(after)]
		rest = after
		below := wanted.Find(t.number)
		switch {
		case below == nil:
		case below.Whole || t.wireType != typeBytes:
			dst = append(dst, field...)
		case below.IsMap():
			dst, err = cutMapEntry(dst, field, value, below)
		default:
			dst, err = cutMessageField(dst, field, value, below)
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// cutMapEntry copies a map entry if its key is wanted. As in all decoders, a missing key is the
// empty one, and the last of duplicate keys counts.
func cutMapEntry(dst, field, entry []byte, wanted *wire.Numbers) ([]byte, error) {
	var key []byte
	for rest := entry; len(rest) > 0; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return dst, err
		}
		rest = after
		if t.number != entryKey {
			continue
		}
		if err := t.requireBytes("the key of a map"); err != nil {
			return dst, err
		}
		key = value
	}
	wanted = wanted.FindKey(key)
	if wanted == nil {
		return dst, nil
	}
	return cutMessageField(dst, field, entry, wanted)
}

// cutMessageField copies a message field without its unwanted fields. The new length takes as many
// bytes as the old one, since decoders accept leading zeros.
func cutMessageField(dst, field, value []byte, wanted *wire.Numbers) ([]byte, error) {
	before := len(field) - len(value)
	dst = append(dst, field[:before]...)
	begin := len(dst)
	dst, err := cutMessage(dst, value, wanted)
	if err != nil {
		return dst, err
	}
	_, tagBytes := varint(field)
	length := dst[begin-(before-tagBytes) : begin]
	rest := uint64(len(dst) - begin)
	for i := range length {
		length[i] = byte(rest&0x7f) | 0x80
		rest >>= 7
	}
	length[len(length)-1] &= 0x7f
	return dst, nil
}
