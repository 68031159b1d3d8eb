package requests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote"
)

// script answers the reads of a bucket one after the other.
type script struct {
	membucket.Memory
	n    atomic.Int32
	acts []func(ctx context.Context, b remote.Body) (remote.Body, error)
}

func (s *script) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	b, err := s.Memory.ReadRange(ctx, key, off, n, etag)
	if i := int(s.n.Add(1)) - 1; err == nil && i < len(s.acts) && s.acts[i] != nil {
		return s.acts[i](ctx, b)
	}
	return b, err
}

func refuse(_ context.Context, _ remote.Body) (remote.Body, error) {
	return remote.Body{}, errors.New("503")
}

func cutAt(n int64) func(context.Context, remote.Body) (remote.Body, error) {
	return func(_ context.Context, b remote.Body) (remote.Body, error) {
		b.ReadCloser = io.NopCloser(io.LimitReader(b.ReadCloser, n))
		return b, nil
	}
}

func hang(ctx context.Context, _ remote.Body) (remote.Body, error) {
	<-ctx.Done()
	return remote.Body{}, ctx.Err()
}

var content = bytes.Repeat([]byte("0123456789"), 1000)

func TestReadAtGoesOnWhereItBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{acts: []func(context.Context, remote.Body) (remote.Body, error){refuse, cutAt(10), hang, cutAt(0), nil}}
		s.Put("k", content)
		c := NewClient(s, remote.Policy{})
		dst := make([]byte, 5000)
		if err := c.ReadAt(t.Context(), remote.Object{Key: "k"}, 3, dst); err != nil || !bytes.Equal(dst, content[3:5003]) {
			t.Errorf("%v", err)
		}
		if st := c.Stats(); st.Requests != 5 || st.Retries != 4 || st.Bytes != 5000 {
			t.Errorf("%+v", st)
		}
	})
}

func TestStreamGoesOnWhereItBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{acts: []func(context.Context, remote.Body) (remote.Body, error){cutAt(4000), refuse, cutAt(1), nil}}
		s.Put("k", content)
		c := NewClient(s, remote.Policy{})
		r := c.NewReader(t.Context(), remote.Object{Key: "k", Size: int64(len(content))}, 100, -1)
		defer r.Close()
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content[100:]) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

func TestGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		for range 100 {
			s.acts = append(s.acts, hang)
		}
		s.Put("k", content)
		for stall, says := range map[time.Duration]string{0: "no byte came for 10s", time.Minute: "no answer within 20s"} {
			c := NewClient(s, remote.Policy{Total: 20 * time.Second, Stall: stall})
			began := time.Now()
			err := c.ReadAt(t.Context(), remote.Object{Key: "k"}, 0, make([]byte, 10))
			if took := time.Since(began); took > 20*time.Second || !errors.Is(err, remote.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) {
				t.Errorf("after %v: %v", took, err)
			}
		}
	})
}

// A pause that the store asks for is made, and does not count against Total; one that is too long is not.
func TestPausesThatAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for pause, ok := range map[time.Duration]bool{0: true, 5 * time.Minute: true, time.Hour: false} {
			busy := func(context.Context, remote.Body) (remote.Body, error) {
				err := remote.NewError("read", "k", nil, errors.New("429"))
				err.After = pause
				return remote.Body{}, err
			}
			s := &script{acts: []func(context.Context, remote.Body) (remote.Body, error){busy, cutAt(10), nil, busy, cutAt(10), nil}}
			s.Put("k", content)
			c := NewClient(s, remote.Policy{})
			began := time.Now()
			dst := make([]byte, 100)
			if err := c.ReadAt(t.Context(), remote.Object{Key: "k"}, 0, dst); (err == nil) != ok || ok && !bytes.Equal(dst, content[:100]) {
				t.Errorf("a pause of %v: %v", pause, err)
			}
			took := time.Since(began)
			if ok && took < pause || took > pause+pause/2+time.Minute || !ok && took > time.Minute {
				t.Errorf("a pause of %v took %v", pause, took)
			}
			if !ok {
				continue
			}
			r := c.NewReader(t.Context(), remote.Object{Key: "k", Size: int64(len(content))}, 0, -1)
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
				t.Errorf("a stream with a pause of %v: %d bytes, %v", pause, len(got), err)
			}
			r.Close()
		}
	})
}

func TestWhatIsNotRetried(t *testing.T) {
	s := new(script)
	s.Put("k", content)
	o, err := NewClient(s, remote.Policy{}).Stat(t.Context(), "k")
	require.NoError(t, err)
	s.Put("k", content[1:])
	c := NewClient(s, remote.Policy{})
	if err := c.ReadAt(t.Context(), o, 0, make([]byte, 10)); !errors.Is(err, remote.ErrChanged) {
		t.Errorf("a changed object: %v", err)
	}
	if _, err := c.Stat(t.Context(), "no"); !errors.Is(err, remote.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "mem://memory/no") {
		t.Errorf("a missing one: %v", err)
	}
	if err := c.WriteAll(t.Context(), "k", nil, remote.WriteOptions{IfNotExist: true}); !errors.Is(err, remote.ErrExists) {
		t.Errorf("an existing object: %v", err)
	}
	if _, _, err := c.ReadAll(t.Context(), "k", 100); !errors.Is(err, remote.ErrInvalid) {
		t.Errorf("one that is too large: %v", err)
	}
	if st := c.Stats(); st.Retries != 0 {
		t.Errorf("%+v", st)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Stat(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled one: %v", err)
	}
	why := errors.New("interrupted")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if _, err := c.Stat(ctx, "k"); err != why {
		t.Errorf("one that was stopped: %v", err)
	}
	r := c.NewReader(ctx, remote.Object{Key: "k"}, 0, 10)
	defer r.Close()
	if _, err := r.Read(make([]byte, 10)); err != why {
		t.Errorf("a stream that was stopped: %v", err)
	}
}

// If nothing listens, or the host has no address, a request fails at once; a store that has
// answered before may come back, and the client calls Policy.Retry for every attempt.
func TestNobodyThere(t *testing.T) {
	dial := func(err error) func(context.Context, remote.Body) (remote.Body, error) {
		return func(context.Context, remote.Body) (remote.Body, error) {
			return remote.Body{}, remote.NewError("read", "k", nil, err)
		}
	}
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, err := range []error{refused, &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}} {
		for _, answers := range []bool{false, true} {
			var reported []string
			s := new(script)
			s.Put("k", content)
			c := NewClient(s, remote.Policy{Backoff: time.Microsecond, Retry: func(text string) { reported = append(reported, text) }})
			want := refusedAttempts
			if answers {
				want = 8
				require.NoError(t, c.ReadAt(t.Context(), remote.Object{Key: "k"}, 0, make([]byte, 9)))
			}
			s.acts = nil
			for range 30 {
				s.acts = append(s.acts, dial(err))
			}
			before := c.Stats().Requests
			err := c.ReadAt(t.Context(), remote.Object{Key: "k"}, 0, make([]byte, 9))
			if n := int(c.Stats().Requests - before); !errors.Is(err, remote.ErrUnavailable) || n != want || len(reported) != want-1 {
				t.Errorf("answered before: %v: %d requests, want %d; reported %q; error %v", answers, n, want, reported, err)
			}
		}
	}
}

func TestListByPage(t *testing.T) {
	m := &membucket.Memory{Pages: 3}
	for i := range 10 {
		m.Put(fmt.Sprintf("a/%d/x", i), nil)
	}
	m.Put("b", nil)
	for delimiter, want := range map[string]int{"": 10, "/": 10} {
		n := 0
		for o, err := range NewClient(m, remote.Policy{}).List(t.Context(), "a/", delimiter) {
			if err != nil || o.Folder != (delimiter == "/") {
				t.Errorf("%+v, %v", o, err)
			}
			n++
		}
		if n != want {
			t.Errorf("%d of %d", n, want)
		}
	}
}

func TestFileIsAReaderAt(t *testing.T) {
	m := new(membucket.Memory)
	m.Put("k", content)
	c := NewClient(m, remote.Policy{})
	f := c.File(t.Context(), remote.Object{Key: "k", Size: int64(len(content))})
	got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()+10))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
