package requests

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote"
)

// refusing is a bucket that refuses that many writers, and whose uploads take their time.
type refusing struct {
	membucket.Memory
	left int
	took time.Duration
	part int // of the last writer
}

func (r *refusing) NewWriter(ctx context.Context, key string, o remote.WriteOptions) (remote.Writer, error) {
	time.Sleep(r.took)
	r.part = o.PartBytes
	if r.left--; r.left >= 0 {
		return nil, errors.New("503")
	}
	return r.Memory.NewWriter(ctx, key, o)
}

func opener(data []byte, opened *int) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		*opened++
		return io.NopCloser(bytes.NewReader(data)), nil
	}
}

// An upload is repeated from its beginning, however long it takes.
func TestWriteFromIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &refusing{left: 3, took: 10 * time.Minute}
		c := NewClient(b, remote.Policy{})
		opened := 0
		if err := c.WriteFrom(t.Context(), "k", int64(len(content)), opener(content, &opened), remote.WriteOptions{}); err != nil || opened != 4 {
			t.Errorf("opened %d times: %v", opened, err)
		}
		if got, _, err := c.ReadAll(t.Context(), "k", 1<<20); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		b.left = 100
		if err := c.WriteFrom(t.Context(), "k", 1, opener(content, &opened), remote.WriteOptions{}); !errors.Is(err, remote.ErrUnavailable) {
			t.Errorf("a store that refuses all: %v", err)
		}
	})
}

// An error of the reader is not the store's, and is not retried.
func TestWriteFromOwnErrors(t *testing.T) {
	c := NewClient(new(membucket.Memory), remote.Policy{})
	own, opened := errors.New("bad sector"), 0
	for _, open := range []func() (io.ReadCloser, error){
		func() (io.ReadCloser, error) { opened++; return nil, own },
		func() (io.ReadCloser, error) {
			opened++
			return io.NopCloser(io.MultiReader(bytes.NewReader(content), failingReader{own})), nil
		},
	} {
		if err := c.WriteFrom(t.Context(), "k", 1, open, remote.WriteOptions{}); err != own {
			t.Errorf("error %v", err)
		}
	}
	if opened != 2 {
		t.Errorf("opened %d times", opened)
	}
	if _, err := c.Stat(t.Context(), "k"); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("an object was made: %v", err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// An object of any size has no more parts than a store takes.
func TestPartsAreFew(t *testing.T) {
	b := new(refusing)
	c := NewClient(b, remote.Policy{})
	for size, want := range map[int64]int{1 << 30: 0, 1 << 40: 1 << 40 / mostParts} {
		opened := 0
		if err := c.WriteFrom(t.Context(), "k", size, opener(nil, &opened), remote.WriteOptions{}); err != nil || b.part != want {
			t.Errorf("%d bytes in parts of %d, want %d (%v)", size, b.part, want, err)
		}
	}
}

func TestCopy(t *testing.T) {
	b := new(membucket.Memory)
	b.Put("a", content)
	c := NewClient(b, remote.Policy{})
	require.NoError(t, c.Copy(t.Context(), "a", "b"))
	if got, _, err := c.ReadAll(t.Context(), "b", 1<<20); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := c.Copy(t.Context(), "c", "b"); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("a copy of nothing: %v", err)
	}
}
