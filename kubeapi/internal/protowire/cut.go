package protowire

import (
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Cut walks through the fields of a message and copies those that are wanted, tag and all;
// of a field that is wanted in part it cuts the message in there. An envelope keeps all
// but the parts that are cut in its raw: its type says whether this is the object that was asked for.
//
// It cuts as deep as fields are named and no deeper: a field that is kept as a whole is not
// entered. A wanted field of a wire type that no message has is copied, so that the
// decoder refuses the object for it, as it would have.
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
		if dst, err = cutField(dst, field, value, wanted.Numbers); err != nil {
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
			dst, err = cutEntry(dst, field, value, below)
		default:
			dst, err = cutField(dst, field, value, below)
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// cutEntry copies the entry of a map, if its key is wanted. An entry without a key has the
// empty one, and of two keys the last counts, as for all decoders.
func cutEntry(dst, field, entry []byte, wanted *wire.Numbers) ([]byte, error) {
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
		if err := t.want("the key of a map"); err != nil {
			return dst, err
		}
		key = value
	}
	if wanted = wanted.FindKey(key); wanted == nil {
		return dst, nil
	}
	return cutField(dst, field, entry, wanted)
}

// cutField copies a field whose value is a message, without its unwanted fields. The new length is written into as many bytes
// as the old one had: decoders accept leading zeros.
func cutField(dst, field, value []byte, wanted *wire.Numbers) ([]byte, error) {
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
