package hdf5

import (
	"context"
	"io"

	"github.com/penstock/penstock/prepare/source/array"
)

// Stream reads records as bytes. It reads whole rows of chunks, if they are at most 32 MiB, so that each chunk is
// decompressed once.
type Stream struct {
	ctx  context.Context
	r    array.Records
	step int64
	at   int64  // number of the next record
	rest []byte // bytes that were read and not returned yet
}

// NewStream returns a Stream of the records from number at on. step is the number of records in one row of chunks.
func NewStream(ctx context.Context, r array.Records, step, at int64) *Stream {
	return &Stream{ctx: ctx, r: r, step: step, at: at}
}

// Read implements io.Reader.
func (r *Stream) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	size := r.r.RecordBytes()
	if len(r.rest) > 0 {
		n := copy(p, r.rest)
		r.rest = r.rest[n:]
		return n, nil
	}
	left := r.r.Len() - r.at
	if left == 0 {
		return 0, io.EOF
	}
	// The caller's buffer holds a whole row of chunks: the records are read into it without a copy.
	if n := int64(len(p) / size); n >= min(r.step, left) {
		n = min(n, left)
		if err := r.r.Records(r.ctx, p[:int(n)*size], r.at, r.at+n); err != nil {
			return 0, err // no bytes: io.ReadFull drops the error of a read that fills its buffer
		}
		r.at += n
		return int(n) * size, nil
	}
	const most = 32 << 20
	n := min(left, max(1, min(r.step, most/int64(size))))
	b := make([]byte, int(n)*size)
	err := r.r.Records(r.ctx, b, r.at, r.at+n)
	r.at, r.rest = r.at+n, b
	if err != nil {
		return 0, err
	}
	// The first part of rest is returned by the branch above.
	return r.Read(p)
}

// Close implements io.Closer.
func (r *Stream) Close() error { return nil }
