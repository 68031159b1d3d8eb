package requests

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/remote"
)

// ReadAt fills dst with the bytes of an object from off on. Bytes that arrived before an attempt
// failed are kept, and the next attempt asks for the rest. If o.ETag is not empty, an object
// that has been replaced is ErrChanged, so that no mixture of two versions is ever returned.
func (c *Client) ReadAt(ctx context.Context, o remote.Object, off int64, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	got := 0
	return c.retry(ctx, "read", o.Key, func(ctx context.Context) error {
		n, err := c.once(ctx, o, off+int64(got), dst[got:])
		got += n
		return err
	})
}

// once makes one attempt, and returns how many bytes came.
func (c *Client) once(ctx context.Context, o remote.Object, off int64, dst []byte) (int, error) {
	watch := newWatch(ctx, c.policy.Stall)
	defer watch.stop()
	body, err := c.bucket.ReadRange(watch.ctx, o.Key, off, int64(len(dst)), o.ETag)
	if err != nil {
		return 0, watch.explain(err)
	}
	defer body.Close()
	n, err := io.ReadFull(watch.reader(body, &c.counts.bytes), dst)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return n, fmt.Errorf("the body ended after %d of %d bytes", n, len(dst))
	}
	return n, watch.explain(err)
}

// NewReader returns the bytes [off, off+n) of an object as a stream; n of -1 means all that
// follow, and then o.Size must be known. If the connection breaks, a new connection continues from
// there. The reader is for one goroutine, and must be closed.
func (c *Client) NewReader(ctx context.Context, o remote.Object, off, n int64) io.ReadCloser {
	if n < 0 {
		n = max(0, o.Size-off)
	}
	return &stream{ctx: ctx, client: c, object: o, off: off, left: n}
}

// stream is an object as it comes.
type stream struct {
	ctx    context.Context
	client *Client
	object remote.Object
	off    int64
	left   int64
	body   io.ReadCloser
	watch  *watch
}

// Read returns the bytes that have arrived, and tries again if the connection fails.
func (s *stream) Read(p []byte) (n int, err error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	p = p[:min(int64(len(p)), s.left)]
	err = s.client.resume(s.ctx, s.object.Key, func() error {
		if n, err = s.read(p); n > 0 {
			return nil
		}
		return err
	})
	s.off, s.left = s.off+int64(n), s.left-int64(n)
	s.client.counts.bytes.Add(int64(n))
	return n, err
}

// read makes one attempt. One that fails leaves no connection.
func (s *stream) read(p []byte) (int, error) {
	if s.body == nil {
		s.client.counts.requests.Add(1)
		s.watch = newWatch(s.ctx, s.client.policy.Stall)
		body, err := s.client.bucket.ReadRange(s.watch.ctx, s.object.Key, s.off, s.left, s.object.ETag)
		if err != nil {
			defer s.drop()
			return 0, s.watch.explain(err)
		}
		s.body = body
	}
	s.watch.timer.Reset(s.watch.limit)
	n, err := s.body.Read(p)
	s.watch.timer.Stop() // the time until the next Read is the caller's
	if err != nil {
		defer s.drop()
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the body ended %d bytes early", s.left-int64(n))
	}
	return n, s.watch.explain(err)
}

func (s *stream) drop() {
	if s.watch != nil {
		s.watch.stop()
	}
	if s.body != nil {
		s.body.Close()
	}
	s.body, s.watch = nil, nil
}

// Close ends the stream.
func (s *stream) Close() error {
	s.drop()
	s.left = 0
	return nil
}

// resume is retry for a part of a stream, whose requests are counted where they are made and
// whose context outlives the call.
func (c *Client) resume(ctx context.Context, key string, do func() error) error {
	for n, left := 1, newDeadline(c.policy, c.policy.Total); ; n++ {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case permanent(err) || n == c.policy.Attempts || !left.pause(ctx, n, after(err)):
			return c.describe("read", key, err, n)
		}
		c.counts.retries.Add(1)
	}
}

// File is an object as an io.ReaderAt, for readers of formats that look here and there. Its
// methods may be called from any goroutine.
type File struct {
	ctx    context.Context
	client *Client
	object remote.Object
}

// File returns an object for random access. Each ReadAt is a request, and all requests have this context.
func (c *Client) File(ctx context.Context, o remote.Object) *File { return &File{ctx, c, o} }

// Size returns the length of the object.
func (f *File) Size() int64 { return f.object.Size }

// ReadAt reads as io.ReaderAt says.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > f.object.Size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), f.object.Size-off))
	if err := f.client.ReadAt(f.ctx, f.object, off, p[:n]); err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
