package source

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/vfs/bucketfs"
	"github.com/penstock/penstock/remote"
)

// stalling is a bucket whose bodies never come.
type stalling struct {
	*membucket.Memory
	reads atomic.Int64
}

// ReadRange implements remote.Bucket.
func (s *stalling) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	b, err := s.Memory.ReadRange(ctx, key, off, n, etag)
	if err == nil {
		s.reads.Add(1)
		b.ReadCloser = &stalledBody{ReadCloser: b.ReadCloser, ctx: ctx}
	}
	return b, err
}

type stalledBody struct {
	io.ReadCloser
	ctx context.Context
}

// Read implements io.Reader: it ends with the attempt.
func (b *stalledBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

// A server that sends headers and no bytes is given up once: detection does not ask it again under each name and format.
func TestStalledServer(t *testing.T) {
	b := &stalling{Memory: &membucket.Memory{Name: "mem://lab", Pages: 3}}
	c := requests.NewClient(b, remote.Policy{Attempts: 3, Stall: 10 * time.Millisecond, Backoff: time.Millisecond})
	require.NoError(t, c.WriteAll(t.Context(), "x.tar.gz", make([]byte, 5000), remote.WriteOptions{}))
	t.Cleanup(vfs.Mount("mem:/lab", bucketfs.New(t.Context(), c, "")))
	kind, err := Detect("mem:/lab/x.tar.gz")
	if !errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("is of kind %q, error %v", kind, err)
	}
	if n := b.reads.Load(); n > 3 {
		t.Errorf("%d requests, and 3 are the policy's", n)
	}
}
