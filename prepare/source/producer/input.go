package producer

import (
	"context"
	"io"
	"sync"
)

// input is the stream, read ahead by a goroutine: a read of a pipe cannot be ended by a context.
// That goroutine ends with the stream, or when the context does and the producer sends once more.
type input struct {
	ctx    context.Context
	blocks chan block
	free   sync.Pool // of *[]byte
	block  []byte    // as it was read, for free
	rest   []byte    // of it
	arena  []byte    // memory for small values
	err    error
}

// block is the result of one read.
type block struct {
	bytes []byte
	err   error
}

const (
	blockBytes  = 1 << 20 // of a read
	queueBlocks = 4       // blocks
	arenaBytes  = 256 << 10
	maxHint     = 64 << 20 // bytes that are allocated for a size before they arrive
)

// newInput reads a pipe ahead in a goroutine, as deep as queueBlocks: a pipe holds 64 KiB, so a producer would
// otherwise stop whenever this process is busy. The goroutine ends with ctx, or with the stream.
func newInput(ctx context.Context, r io.Reader) *input {
	in := &input{ctx: ctx, blocks: make(chan block, queueBlocks)}
	in.free.New = func() any { b := make([]byte, blockBytes); return &b }
	go in.pump(r)
	return in
}

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

// fill reads until rest has at least one byte.
func (in *input) fill() error {
	for len(in.rest) == 0 {
		if in.err != nil {
			return in.err
		}
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

// take returns the next n bytes, in memory that stays as it is.
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

// memory returns an empty slice for n bytes.
func (in *input) memory(n int) []byte {
	if n > arenaBytes/4 {
		return make([]byte, 0, min(n, maxHint))
	}
	if len(in.arena) < n {
		in.arena = make([]byte, arenaBytes)
	}
	out := in.arena[:0:n]
	in.arena = in.arena[n:]
	return out
}
