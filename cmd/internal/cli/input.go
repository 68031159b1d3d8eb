package cli

import (
	"context"
	"io"
)

// input is the standard input of a command: a read that waits ends with the command's context.
type input struct {
	ctx  context.Context
	from io.Reader

	buf   []byte
	done  chan read
	waits bool // a read runs
}

type read struct {
	n   int
	err error
}

// Read implements io.Reader. The read of a command that was interrupted goes on until the process ends, in a buffer of
// its own.
func (in *input) Read(p []byte) (int, error) {
	if !in.waits {
		if in.buf == nil {
			in.buf, in.done = make([]byte, 1<<16), make(chan read, 1)
		}
		in.waits = true
		go func(buf []byte) {
			n, err := in.from.Read(buf)
			in.done <- read{n, err}
		}(in.buf[:min(len(p), len(in.buf))])
	}
	select {
	case <-in.ctx.Done():
		return 0, context.Cause(in.ctx)
	case r := <-in.done:
		in.waits = false
		return copy(p, in.buf[:r.n]), r.err
	}
}
