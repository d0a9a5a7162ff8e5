// Package wire has the interfaces and shared code of the encodings of the Kubernetes list/watch
// protocol. Each encoding is a sibling package (jsonwire, protowire, cborwire) that exports one
// Encoding.
//
// # Reading a body
//
// A body is read in two steps. A List or Watch cuts the next item or frame out of the body, as
// bytes, and looks only at brackets, lengths or major types. Then the Encoding decodes those bytes
// into the wanted type. Cutting before decoding has three advantages:
//
//   - only the current value is in memory, in a buffer that the next one reuses (Window);
//   - a value that cannot be decoded does not affect later ones: its end is known, and Identify
//     reads as much of its key as possible;
//   - limits are checked before memory is allocated.
//
// If only some fields are wanted (Fields), Cut makes a smaller value in the same encoding between
// the two steps. So decoders need not know about it, and Identify still reads the original bytes.
//
// # Ownership
//
// Bytes that Next returns belong to the reader and are valid until the next call of Next. Decoded
// values never refer to them.
//
// # Errors
//
// io.EOF means that a body ended where it may, io.ErrUnexpectedEOF that it ended elsewhere.
// ErrMalformed is wrapped by errors for bytes that do not conform to the protocol. A *LimitError
// means that a limit was exceeded, a *NotListError that the body is not a list. Any other error is
// from the body's Read. After an error, a List or Watch returns the same error again.
package wire
