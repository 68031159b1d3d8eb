// Package requests makes requests to a remote.Bucket as programs need them: requests that fail are repeated, and
// requests that stall are given up.
//
// A bucket sends each request once, and any request to an object store fails now and then. A [Client] repeats it by a
// policy: after a pause that grows and is random, so that a thousand processes do not return at once; within a total
// time; and only after errors that can pass. A stream that breaks continues at the byte where it broke, of the same
// version of the object. The Client counts requests, bytes and retries for Stats. A [File] is an object as an
// io.ReaderAt, and a [Folder] is a prefix as a file system of small files.
package requests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/remote"
)

// Client is a Bucket as programs use it: failed requests are retried, after a pause that grows;
// stalled ones are given up; a body that ends too early continues where it ended. Its methods may be called from any
// goroutine.
type Client struct {
	bucket remote.Bucket
	policy remote.Policy
	counts counts

	answered atomic.Bool // the store has answered a request
}

// NewClient returns a Client of a bucket. It panics if the policy is not valid.
func NewClient(b remote.Bucket, p remote.Policy) *Client {
	if err := p.Validate(); err != nil {
		panic(err.Error())
	}
	return &Client{bucket: b, policy: withDefaults(p)}
}

// Bucket returns the bucket that the Client sends its requests to.
func (c *Client) Bucket() remote.Bucket { return c.bucket }

// Name returns where an object is, for people.
func (c *Client) Name(key string) string { return remote.NameOf(c.bucket, key) }

// Close closes the bucket.
func (c *Client) Close() error { return c.bucket.Close() }

// Stat returns an object's size and version.
func (c *Client) Stat(ctx context.Context, key string) (remote.Object, error) {
	var o remote.Object
	err := c.retry(ctx, "stat", key, func(ctx context.Context) (err error) {
		o, err = c.bucket.Stat(ctx, key)
		return err
	})
	return o, err
}

// Delete removes an object.
func (c *Client) Delete(ctx context.Context, key string) error {
	tried := false
	return c.retry(ctx, "delete", key, func(ctx context.Context) error {
		err := c.bucket.Delete(ctx, key)
		if tried && errors.Is(err, remote.ErrNotFound) {
			return nil // the attempt before has done it, and its answer was lost
		}
		tried = true
		return err
	})
}

// WriteAll writes an object.
func (c *Client) WriteAll(ctx context.Context, key string, data []byte, opts remote.WriteOptions) error {
	return c.retry(ctx, "write", key, func(ctx context.Context) error {
		w, err := c.bucket.NewWriter(ctx, key, opts)
		if err != nil {
			return err
		}
		defer w.Close()
		if _, err := w.Write(data); err != nil {
			return err
		}
		return w.Commit()
	})
}

// WriteFrom writes an object of size bytes, which open opens again for each attempt. An attempt may
// take as long as the SDK of the store waits. An error of the reader is returned as it is, at once.
func (c *Client) WriteFrom(ctx context.Context, key string, size int64, open func() (io.ReadCloser, error),
	opts remote.WriteOptions) error {
	if part := size / mostParts; part > int64(max(opts.PartBytes, usualPart)) {
		opts.PartBytes = int(part)
	}
	var own error
	err := c.insist(ctx, 0, "write", key, func(ctx context.Context) (err error) {
		own, err = c.writeOnce(ctx, key, open, opts)
		if own != nil {
			return nil
		}
		return err
	})
	if own != nil {
		return own
	}
	return err
}

// An upload to S3 has at most 10,000 parts. Parts that suit a store are smaller than usualPart.
const (
	mostParts = 9000
	usualPart = 4 << 20
)

// writeOnce makes one attempt; own is an error of the reader whose bytes are written.
func (c *Client) writeOnce(ctx context.Context, key string, open func() (io.ReadCloser, error),
	opts remote.WriteOptions) (
	own, err error) {
	f, err := open()
	if err != nil {
		return err, nil
	}
	defer f.Close()
	w, err := c.bucket.NewWriter(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	from := &source{r: f}
	if _, err := io.Copy(w, from); err != nil {
		return from.err, err
	}
	return nil, w.Commit()
}

// source remembers the error of a reader.
type source struct {
	r   io.Reader
	err error
}

// Read remembers an error of the reader: repeating a write cannot help if what is to be written cannot be read.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// Copy makes an object of another object's bytes inside the store, which may refuse objects of more than 5 GB, as S3
// does.
func (c *Client) Copy(ctx context.Context, from, to string) error {
	return c.insist(ctx, 0, "write", to, func(ctx context.Context) error { return c.bucket.Copy(ctx, from, to) })
}

// maxEmpty bounds the pages without objects that follow each other: stores send empty pages where many objects were
// removed.
const maxEmpty = 1000

// List yields the objects whose keys start with prefix, in order of their keys: see
// Bucket.ListPage. An error is the last that it yields; a key without the prefix, and a listing that begins again, are
// ErrInvalid.
func (c *Client) List(ctx context.Context, prefix, delimiter string) iter.Seq2[remote.Object, error] {
	return func(yield func(remote.Object, error) bool) {
		for page, err := range c.ListPages(ctx, prefix, delimiter) {
			for _, o := range page.Objects {
				if !yield(o, nil) {
					return
				}
			}
			if err != nil {
				yield(remote.Object{}, err)
			}
		}
	}
}

// ListPages is List by page: each is one request.
func (c *Client) ListPages(ctx context.Context, prefix, delimiter string) iter.Seq2[remote.Page, error] {
	return func(yield func(remote.Page, error) bool) {
		last, empty := "", 0
		for token, more := []byte(nil), true; more; {
			var page remote.Page
			err := c.retry(ctx, "list", prefix, func(ctx context.Context) (err error) {
				page, err = c.bucket.ListPage(ctx, prefix, delimiter, token)
				return err
			})
			if err == nil {
				page.Objects, err = c.asked(prefix, page.Objects)
			}
			if !yield(page, err) || err != nil {
				return
			}
			if page.Next != nil && (bytes.Equal(page.Next, token) || len(page.Objects) > 0 && page.Objects[0].Key <= last &&
				last != "" || empty == maxEmpty) {
				yield(remote.Page{}, remote.NewError("list", c.Name(prefix), remote.ErrInvalid,
					errors.New("the listing begins again where it was: it would never end")))
				return
			}
			empty++
			if len(page.Objects) > 0 {
				empty = 0
				last = page.Objects[len(page.Objects)-1].Key
			}
			token, more = page.Next, page.Next != nil
		}
	}
}

// asked returns the objects before the first object that was not asked for.
func (c *Client) asked(prefix string, objects []remote.Object) ([]remote.Object, error) {
	for i, o := range objects {
		if !strings.HasPrefix(o.Key, prefix) {
			return objects[:i], remote.NewError("list", c.Name(prefix), remote.ErrInvalid,
				fmt.Errorf("the listing has the key %.200q, which was not asked for", o.Key))
		}
	}
	return objects, nil
}

// maxUnsized bounds an object whose size the store does not report.
const maxUnsized = 64 << 20

// ReadAll returns an object in one request. An object of more than limit bytes is ErrInvalid. So is a body that is
// longer than the size that the store reports, or longer than 64 MiB if the store reports no size.
func (c *Client) ReadAll(ctx context.Context, key string, limit int64) (data []byte, o remote.Object, err error) {
	err = c.retry(ctx, "read", key, func(ctx context.Context) error {
		watch := newWatch(ctx, c.policy.Stall)
		defer watch.stop()
		body, err := c.bucket.ReadRange(watch.ctx, key, 0, -1, "")
		if err != nil {
			return watch.explain(err)
		}
		defer body.Close()
		o = body.Object
		if o.Size > limit {
			return remote.NewError("read", c.Name(key), remote.ErrInvalid, fmt.Errorf("%d bytes; no more than %d are expected",
				o.Size, limit))
		}
		most := o.Size
		if most < 0 {
			most = min(limit, maxUnsized)
		}
		data, err = readBounded(watch.reader(body, &c.counts.bytes), most)
		switch {
		case err != nil:
			return watch.explain(err)
		case int64(len(data)) > most:
			return remote.NewError("read", c.Name(key), remote.ErrInvalid,
				fmt.Errorf("more than the %d bytes that are expected", most))
		case o.Size >= 0 && int64(len(data)) != o.Size:
			return fmt.Errorf("the body ended after %d of %d bytes", len(data), o.Size)
		}
		o.Size = int64(len(data))
		return nil
	})
	if err != nil {
		return nil, o, err
	}
	return data, o, nil
}

// readBounded reads the whole body, but at most most+1 bytes, so that a longer body is noticed. Its buffer of a MiB
// grows fourfold when it is full: a size that a store reports is not believed, and io.ReadAll allocates five times
// the bytes that it returns.
func readBounded(r io.Reader, most int64) ([]byte, error) {
	data := make([]byte, 0, min(most+1, 1<<20))
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return data, nil
		case err != nil || int64(len(data)) > most:
			return data, err
		case len(data) == cap(data):
			data = append(make([]byte, 0, min(most+1, 4*int64(cap(data)))), data...)
		}
	}
}

// retry calls do until it succeeds, fails for good, or the policy ends it.
func (c *Client) retry(ctx context.Context, op, key string, do func(context.Context) error) error {
	return c.insist(ctx, c.policy.Total, op, key, do)
}

// insist is retry with a time limit, 0 for none. When the time is over, it returns the error of the last attempt.
func (c *Client) insist(ctx context.Context, limit time.Duration, op, key string,
	do func(context.Context) error) error {
	before := fmt.Errorf("no answer within %v", c.policy.Total)
	for n, left := 1, newDeadline(c.policy, limit); ; n++ {
		c.counts.requests.Add(1)
		over, err := left.attempt(ctx, do)
		if over && err != nil && !permanent(err) {
			err = before
		}
		if err == nil || permanent(err) {
			c.answered.Store(true)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case permanent(err):
			return c.describe(op, key, err, n)
		case n == c.policy.Attempts || n >= refusedAttempts && isAbsent(err) && !c.answered.Load() || over ||
			!left.pause(ctx, n, after(err)):
			c.counts.failures.Add(1)
			return c.describe(op, key, err, n)
		}
		c.counts.retries.Add(1)
		if c.policy.Retry != nil {
			c.policy.Retry(fmt.Sprintf("%v; attempt %d of %d", c.describe(op, key, err, 1), n+1, c.policy.Attempts))
		}
		before = err
	}
}

// describe returns the error of a request that was tried n times.
func (c *Client) describe(op, key string, err error, n int) error {
	var known *remote.Error
	if !errors.As(err, &known) {
		known = remote.NewError(op, c.Name(key), nil, err)
	}
	if permanent(err) {
		out := *known
		out.Tries = n
		return &out
	}
	// Without the end of the context, which insist made.
	return &remote.Error{Op: known.Op, Object: known.Object, Kind: remote.ErrUnavailable, Detail: known.Detail, Tries: n,
		After: known.After, Absent: known.Absent}
}
