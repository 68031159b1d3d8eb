package cli

import (
	"context"
	"io"
)

// input is the standard input of a command. A Read that waits for data ends when the command's
// context does; a plain read of os.Stdin would keep the command waiting after Ctrl-C. One goroutine
// calls Read.
type input struct {
	ctx  context.Context
	from io.Reader

	buf   []byte
	done  chan read
	waits bool // a goroutine is in from.Read and will send to done
}

// read is the result of a Read of the underlying reader.
type read struct {
	n   int
	err error
}

// Read implements io.Reader. The underlying read runs in a goroutine and into in.buf, not into p:
// after an interruption it goes on until the process ends, and must not write to memory that the
// caller uses again. If Read is called again meanwhile, it waits for the same underlying read.
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
