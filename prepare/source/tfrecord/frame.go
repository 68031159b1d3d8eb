package tfrecord

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/prepare/source"
)

// A file is a sequence of frames (tensorflow/core/lib/io/record_writer.h):
//
//	uint64 length, uint32 masked CRC of these 8 bytes, the record, uint32 masked CRC of the record
//
// Numbers are little endian. source.MaskedCRC computes the CRC.
const headBytes, tailBytes = 12, 4

var (
	errRecord = source.ValueError("the checksum of the record is wrong, it was changed after it was written")
	errHead   = errors.New("the checksum of a record's length is wrong, so nothing after it can be read")
	errShort  = errors.New("the file is cut short in a record")
)

// frames reads the frames of a file.
type frames struct {
	r    io.Reader
	head [headBytes]byte
}

// next returns the next record in new memory, or skips it. io.EOF is the end of the file. After an ErrValue, which
// concerns only this record, the next record can be read.
func (f *frames) next(skip bool) ([]byte, error) {
	switch _, err := io.ReadFull(f.r, f.head[:]); {
	case err == io.ErrUnexpectedEOF:
		return nil, errShort
	case err != nil:
		return nil, err
	case !source.IsTFRecord(f.head[:]):
		return nil, errHead
	}
	n := binary.LittleEndian.Uint64(f.head[:])
	// The length has a checksum of its own, but a writer can still store any number.
	if n > source.MaxValue {
		return nil, fmt.Errorf("a record of %d bytes; at most %d are possible", n, source.MaxValue)
	}
	if skip {
		return nil, source.SkipBytes(f.r, int64(n)+tailBytes, errShort)
	}
	b, err := source.ReadBytes(f.r, int64(n)+tailBytes, errShort)
	if err != nil {
		return nil, err
	}
	data, tail := b[:n:n], b[n:]
	if source.MaskedCRC(data) != binary.LittleEndian.Uint32(tail) {
		return nil, errRecord
	}
	return data, nil
}
