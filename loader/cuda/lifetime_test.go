//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// small is a config whose epochs have six batches.
func small(src loader.Source) config {
	return config{
		src: src, opts: Options{Fields: both},
		loader: loader.Options{BatchSize: 5, Sampler: sampler.Shuffle{}, Prefetch: 2},
	}
}

// A loop may be left after any batch, in any way, and the next one is whole.
func TestLeaving(t *testing.T) {
	src := newSource(30, tensor.Shape{4, 4})
	for mode, lazy := range modes {
		for name, leave := range map[string]func(b Batch, cancel func()) (stop bool){
			"break":           func(Batch, func()) bool { return true },
			"panic":           func(Batch, func()) bool { panic("of the body") },
			"cancel":          func(_ Batch, cancel func()) bool { cancel(); return false },
			"cancel and stop": func(_ Batch, cancel func()) bool { cancel(); return true },
		} {
			t.Run(mode+"/"+name, func(t *testing.T) {
				useFake(t, setting{lazy: lazy, devices: 2})
				c := small(src)
				c.devices = 2
				r := c.mustOpen(t)
				defer r.mustClose(t)
				for at := range 7 {
					within(t, func() { testLeaving(t, r, at, leave) })
				}
				require.NoError(t, r.check(src))
			})
		}
	}
}

func testLeaving(t *testing.T, r *rig, at int, leave func(Batch, func()) bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	func() {
		defer func() {
			if p := recover(); p != nil && p != "of the body" {
				t.Error(p)
			}
		}()
		for b, err := range r.pf.Epoch(ctx, at) {
			if err != nil {
				if !errors.Is(err, context.Canceled) || ctx.Err() == nil {
					t.Error(err)
				}
				continue
			}
			if ctx.Err() != nil {
				t.Error("a batch after the context was cancelled")
			}
			stop := false
			if b.Step() == at {
				stop = leave(b, cancel)
			}
			if err := r.consume(b, both...); err != nil {
				t.Error(err)
			}
			if stop {
				break
			}
		}
	}()
	n := 0
	for b, err := range r.pf.Epoch(t.Context(), 100) {
		if err != nil {
			t.Error(err)
			return
		}
		n++
		require.NoError(t, r.consume(b, both...))
	}
	if n != 6 {
		t.Errorf("left at batch %d: the next epoch has %d batches", at, n)
	}
}

// A body that ends without Done is waited for, if it has asked for anything that its streams
// could use.
func TestUnfinished(t *testing.T) {
	src := newSource(30, tensor.Shape{16})
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			r := small(src).mustOpen(t)
			defer r.mustClose(t)
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				if b.Step()%2 == 0 {
					continue
				}
				require.NoError(t, b.Wait(r.streams[0]))
				s := seen{b.Device(), slices.Clone(b.Indices()), make(map[string][]byte)}
				require.NoError(t, r.read(b.Field("images"), "images", r.streams[0], s))
				r.seen = append(r.seen, s)
			}
			if n := r.pf.Stats().Unfinished; n != 3 {
				t.Errorf("%d unfinished bodies, want 3", n)
			}
			require.NoError(t, r.check(src))
		})
	}
}

func TestKeep(t *testing.T) {
	src := newSource(30, tensor.Shape{16})
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			r := small(src).mustOpen(t)
			defer r.mustClose(t)
			var kept []Batch
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				if b.Step() < 2 {
					require.NoError(t, errors.Join(b.Keep(), b.Keep()))
					kept = append(kept, b)
					continue
				}
				if err := b.Keep(); !errors.Is(err, ErrKept) {
					t.Fatalf("a third batch was kept: %v", err)
				}
				require.NoError(t, r.consume(b, both...))
			}
			if n := r.pf.Stats().Held; n != 2 {
				t.Errorf("%d held", n)
			}
			for _, b := range kept {
				require.NoError(t, r.consume(b, both...))
			}
			require.NoError(t, r.check(src))
		})
	}
}

// A Prefetcher that is closed with a batch held frees the rest, and that one when it ends.
func TestCloseWhileHeld(t *testing.T) {
	useFake(t, setting{lazy: true})
	src := newSource(30, tensor.Shape{16})
	r := small(src).mustOpen(t)
	var kept Batch
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		require.NoError(t, b.Keep())
		kept = b
		break
	}
	if err := r.pf.Close(); err == nil || !strings.Contains(err.Error(), "1 batches are still held") {
		t.Fatalf("close: %v", err)
	}
	if st := stats(); st.device != 1 {
		t.Errorf("%d pieces of device memory, want the one that is held", st.device)
	}
	require.NoError(t, r.consume(kept, both...))
	require.NoError(t, r.check(src))
	if st := stats(); st.device != 0 {
		t.Errorf("%d pieces of device memory after the end", st.device)
	}
	r.pf = nil
	r.mustClose(t)
}

// Close in a loop body ends the loop, and everything is freed when it is left.
func TestCloseInLoop(t *testing.T) {
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
			var last error
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				if last = err; err != nil {
					continue
				}
				require.NoError(t, r.pf.Close())
				require.NoError(t, b.Done(r.streams[0]))
			}
			if !errors.Is(last, ErrClosed) {
				t.Errorf("the loop ended with %v", last)
			}
			if err := r.pf.Close(); !errors.Is(err, ErrClosed) {
				t.Errorf("closed twice: %v", err)
			}
			for _, err := range r.pf.Epoch(t.Context(), 0) {
				if !errors.Is(err, ErrClosed) {
					t.Errorf("an epoch after Close: %v", err)
				}
			}
			r.pf = nil
			r.mustClose(t)
		})
	}
}

func TestBusy(t *testing.T) {
	useFake(t, setting{})
	r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
	defer r.mustClose(t)
	for _, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		for _, err := range r.pf.Epoch(t.Context(), 1) {
			if !errors.Is(err, ErrBusy) {
				t.Errorf("a loop in a loop: %v", err)
			}
		}
		for _, batches := range r.pf.Epochs(t.Context(), 1) {
			for _, err := range batches {
				if !errors.Is(err, ErrBusy) {
					t.Errorf("a loop in a loop: %v", err)
				}
			}
		}
		break
	}
}

// Every use of a Batch after its time panics.
func TestStale(t *testing.T) {
	useFake(t, setting{})
	r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
	defer r.mustClose(t)
	var left, done Batch
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		if b.Step() == 0 {
			left = b
			continue
		}
		done = b
		require.NoError(t, b.Done(r.streams[0]))
		break
	}
	for name, b := range map[string]Batch{"zero": {}, "left": left, "done": done} {
		for what, use := range map[string]func(){
			"Field": func() { b.Field("images") }, "Indices": func() { b.Indices() }, "Mask": func() { b.Mask() },
			"Len": func() { b.Len() }, "Step": func() { b.Step() }, "Epoch": func() { b.Epoch() }, "Device": func() { b.Device() },
			"Ready": func() { b.Ready() }, "Stream": func() { b.Stream() }, "Wait": func() { _ = b.Wait(0) },
			"Synchronize": func() { _ = b.Synchronize() }, "Done": func() { _ = b.Done(0) }, "Keep": func() { _ = b.Keep() },
			"CopyTo":          func() { _ = b.CopyTo(nil, "images") },
			"DLPack":          func() { _, _ = b.DLPack("images", 0) },
			"DLPackVersioned": func() { _, _ = b.DLPackVersioned("images", 0) },
		} {
			func() {
				defer func() {
					if recover() != stale {
						t.Errorf("%s of a batch that is %s does not panic", what, name)
					}
				}()
				use()
			}()
		}
	}
}

// A Device that something is left of says so, and is given back with the last of it.
func TestDeviceClose(t *testing.T) {
	useFake(t, setting{})
	d := mustOpenDevice(t)
	s, err := d.NewStream()
	require.NoError(t, err)
	m := d.Allocator()
	b, err := m.Alloc(100)
	require.NoError(t, err)
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "2 Prefetchers, Streams or buffers") {
		t.Errorf("close: %v", err)
	}
	if _, err := d.NewStream(); !errors.Is(err, ErrClosed) {
		t.Errorf("a stream of a closed device: %v", err)
	}
	require.NoError(t, errors.Join(d.FreeStream(s), m.Free(b)))
	if err := d.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

// An error of the Source comes after the batches before it, and names the record.
func TestBrokenRecord(t *testing.T) {
	useFake(t, setting{lazy: true})
	src := newSource(30, tensor.Shape{16})
	src.broken = 17
	c := small(src)
	c.loader.Sampler = nil
	r := c.mustOpen(t)
	defer r.mustClose(t)
	n := 0
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		var located *loader.Error
		if err != nil {
			if n != 3 || !errors.Is(err, errBroken) || !errors.As(err, &located) {
				t.Errorf("after %d batches: %v", n, err)
			}
			break
		}
		n++
		require.NoError(t, r.consume(b, both...))
	}
	require.NoError(t, r.check(src))
}

// Close waits for what streams of the consumer still read, and for copies that nobody got.
func TestCloseBehindWork(t *testing.T) {
	for mode, lazy := range modes {
		for _, batches := range []int{1, 6} {
			t.Run(fmt.Sprintf("%s/batches=%d", mode, batches), func(t *testing.T) {
				useFake(t, setting{lazy: lazy})
				src := newSource(30, tensor.Shape{16})
				c := small(src)
				c.unpinned = true
				r := c.mustOpen(t)
				defer r.mustClose(t)
				for b, err := range r.pf.Epoch(t.Context(), 0) {
					require.NoError(t, err)
					require.NoError(t, r.consume(b, both...))
					if len(r.seen) == batches {
						for batches < 6 && len(r.pf.run.ready) == 0 {
							time.Sleep(time.Millisecond) // until a copy is under way that nobody will get
						}
						break
					}
				}
				require.NoError(t, r.pf.Close())
				r.pf = nil
				require.NoError(t, r.check(src))
			})
		}
	}
}

// Of several streams that work on a batch, one by a capsule, all are waited for.
func TestTwoStreams(t *testing.T) {
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			src := newSource(60, tensor.Shape{16})
			c := small(src)
			r := c.mustOpen(t)
			defer r.mustClose(t)
			d := r.devices[0]
			other, err := d.NewStream()
			require.NoError(t, err)
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				capsule := dlpack(t, b, "images", other)
				s := seen{d, slices.Clone(b.Indices()), make(map[string][]byte)}
				require.NoError(t, r.read(b.Field("images"), "images", other, s))
				r.seen = append(r.seen, s)
				capsule.Delete()
				require.NoError(t, r.consume(b, both...))
			}
			require.NoError(t, errors.Join(r.check(src), d.SynchronizeStream(other)))
			require.NoError(t, r.check(src))
			require.NoError(t, d.FreeStream(other))
		})
	}
}
