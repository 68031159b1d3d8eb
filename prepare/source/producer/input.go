package producer

import (
	"context"
	"io"
	"sync"
)

// input is the stream of a producer, which a goroutine reads ahead: a read of a pipe cannot be interrupted by a
// context. The goroutine ends at the end of the stream, or after ctx has ended when a read returns.
type input struct {
	ctx    context.Context
	blocks chan block
	free   sync.Pool // of *[]byte, for the goroutine
	block  []byte    // current block, returned to free when rest is used up
	rest   []byte    // unread bytes of block
	arena  []byte    // memory from which small values are cut
	err    error     // of the stream, after the last block
}

// block is the result of one read.
type block struct {
	bytes []byte
	err   error
}

const (
	blockBytes  = 1 << 20 // bytes of a read
	queueBlocks = 4       // blocks that are read ahead
	arenaBytes  = 256 << 10
	maxHint     = 64 << 20 // most bytes that are allocated for a size before the bytes arrive
)

// newInput starts the goroutine. It reads up to queueBlocks blocks ahead: a pipe holds only 64 KiB, so the producer
// would otherwise wait whenever this process is busy.
func newInput(ctx context.Context, r io.Reader) *input {
	in := &input{ctx: ctx, blocks: make(chan block, queueBlocks)}
	in.free.New = func() any { b := make([]byte, blockBytes); return &b }
	go in.pump(r)
	return in
}

// pump sends the blocks of r until an error or the end of ctx.
func (in *input) pump(r io.Reader) {
	for {
		b := *in.free.Get().(*[]byte)
		n, err := r.Read(b)
		select {
		case in.blocks <- block{b[:n], err}:
		case <-in.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// fill waits until rest has at least one byte.
func (in *input) fill() error {
	for len(in.rest) == 0 {
		if in.err != nil {
			return in.err
		}
		// All values were copied out of the block by take, so its memory can be used again.
		if cap(in.block) > 0 {
			b := in.block[:cap(in.block)]
			in.free.Put(&b)
			in.block = nil
		}
		select {
		case b := <-in.blocks:
			in.block, in.rest, in.err = b.bytes, b.bytes, b.err
		case <-in.ctx.Done():
			return context.Cause(in.ctx)
		}
	}
	return nil
}

// ReadByte implements io.ByteReader.
func (in *input) ReadByte() (byte, error) {
	if err := in.fill(); err != nil {
		return 0, err
	}
	b := in.rest[0]
	in.rest = in.rest[1:]
	return b, nil
}

// take returns the next n bytes, in memory that is not reused.
func (in *input) take(n int) ([]byte, error) {
	out := in.memory(n)
	for len(out) < n {
		if err := in.fill(); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		k := min(n-len(out), len(in.rest))
		out = append(out, in.rest[:k]...)
		in.rest = in.rest[k:]
	}
	return out, nil
}

// memory returns an empty slice with room for n bytes. Small values share an arena, as a sample of a few numbers
// would otherwise cost an allocation each. A larger n is trusted only up to maxHint, and grows as bytes arrive.
func (in *input) memory(n int) []byte {
	if n > arenaBytes/4 {
		return make([]byte, 0, min(n, maxHint))
	}
	if len(in.arena) < n {
		in.arena = make([]byte, arenaBytes)
	}
	// The capacity ends at n, so that appending to a value never reaches its neighbor.
	out := in.arena[:0:n]
	in.arena = in.arena[n:]
	return out
}
