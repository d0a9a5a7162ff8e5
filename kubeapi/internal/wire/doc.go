// Package wire says what the encodings of the Kubernetes list/watch protocol have in
// common, and holds what they share. The encodings are packages beside it: jsonwire,
// protowire and cborwire, each with one exported value that is its Encoding.
//
// # How a body is read
//
// In two steps, whatever the encoding. A List or a Watch first cuts the next item or
// frame out of the body, as bytes; only the brackets, lengths or major types are
// looked at for that. Then the Encoding decodes those bytes, once, straight into
// what the caller wants. That a value is cut out before it is decoded has three uses:
//
//   - nothing of a body is held but the value at hand, in a buffer that the next one
//     reuses (Window);
//   - a value that cannot be decoded spoils nothing behind it: its end is known, and
//     Identify reads what it can of whose it is;
//   - limits are kept before memory is spent.
//
// Where only some fields of an object are wanted (Fields), there is a step between: Cut
// makes smaller bytes of those, in the same encoding, and these are decoded. It follows that
// decoders need to know nothing of it, and that what identifies an object that cannot be
// decoded is read from the bytes as they came.
//
// # Who owns what
//
// Bytes that Next returns belong to the reader and are good until the next call of
// Next. Decoded values never refer to them.
//
// # Errors
//
// io.EOF means that a body ended where it may, io.ErrUnexpectedEOF that it ended
// elsewhere. ErrMalformed is wrapped by errors of a form that is not the protocol's, a
// *LimitError says that a limit was passed, a *NotListError that the body is no list.
// Everything else is the body's own error, as its Read returned it. After any error a
// List or Watch returns it again.
package wire
