//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// A DLPack deleter runs on a thread of another library, whose context it leaves current.
func TestContextIsRestored(t *testing.T) {
	useFake(t, setting{devices: 2})
	d, err := Open(1)
	require.NoError(t, err)
	defer d.Close()
	r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		m := dlpack(t, b, "images", r.streams[0])
		runtime.LockOSThread()
		if r := d.drv.CtxPushCurrent(d.ctx); r != 0 {
			t.Fatal(r)
		}
		fakeDriver.delete(m)
		var ctx uintptr
		if r := d.drv.CtxPopCurrent(&ctx); r != 0 || ctx != d.ctx {
			t.Errorf("the thread's context is %#x after the deleter, result %d; it was %#x", ctx, r, d.ctx)
		}
		runtime.UnlockOSThread()
		require.NoError(t, b.Done(r.streams[0]))
		break
	}
}

// Streams that order nothing are refused wherever a stream orders something, and the batch is
// still valid: the default stream of a thread, and one that is being captured into a graph.
func TestStreamIsRefused(t *testing.T) {
	for name, want := range map[string]error{"thread": ErrThreadStream, "captured": ErrCapturing} {
		t.Run(name, func(t *testing.T) {
			useFake(t, setting{lazy: true})
			src := newSource(30, tensor.Shape{16})
			r := small(src).mustOpen(t)
			defer r.mustClose(t)
			stream := Stream(perThreadStream)
			if want == ErrCapturing {
				var err error
				if stream, err = r.devices[0].NewStream(); err != nil {
					t.Fatal(err)
				}
				defer r.devices[0].FreeStream(stream)
			}
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				if want == ErrCapturing {
					fakeDriver.capture(uintptr(stream), 1)
				}
				_, packed := b.DLPack("images", stream)
				for _, err := range []error{b.Wait(stream), packed, r.devices[0].SynchronizeStream(stream), b.Done(stream)} {
					if !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				}
				if want == ErrCapturing {
					fakeDriver.capture(uintptr(stream), 0)
				}
				require.NoError(t, r.consume(b, both...))
			}
			require.NoError(t, r.check(src))
		})
	}
}

// Rows of a batch that outgrow its memory, on the device and page-locked on the host, free nothing
// before Close: that would wait for all that the device has to do.
func TestGrowthFreesNothing(t *testing.T) {
	useFake(t, setting{lazy: true})
	c := config{src: newSteepWords(200, 30), opts: Options{Fields: []string{"tokens", "tokens.offsets"}, Prefetch: 1}}
	c.loader.BatchSize = 6
	r := c.mustOpen(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		require.NoError(t, errors.Join(b.Wait(r.streams[0]), b.Done(r.streams[0])))
	}
	st := stats()
	if st.stalls != 0 {
		t.Errorf("%d frees in the middle of the run", st.stalls)
	}
	if st.device < 4 || st.host < 4 {
		t.Errorf("%d pieces of device memory and %d of the host: nothing has grown", st.device, st.host)
	}
	r.mustClose(t)
}

// A Loader that is closed leaves its memory to the next one.
func TestAllocatorKeepsMemory(t *testing.T) {
	useFake(t, setting{})
	d := mustOpenDevice(t)
	m := d.Allocator()
	for _, n := range []int{100_000, 90_000, 100_000} {
		b, err := m.Alloc(n)
		require.NoError(t, err)
		if len(b) != n || cap(b) > n+n/4 {
			t.Errorf("%d bytes with room for %d, want %d", len(b), cap(b), n)
		}
		require.NoError(t, m.Free(b))
	}
	if n := stats().host; n != 1 {
		t.Errorf("%d pieces of page-locked memory, want 1", n)
	}
	require.NoError(t, d.Close())
}

// Records that are mapped in several pieces are read from there, as far as each goes.
func TestDirectPieces(t *testing.T) {
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			src := &piecedSource{newMappedSource(t, 20, tensor.Shape{3, 64, 64}), []int{7, 8, 15}}
			c := config{src: src, loader: loader.Options{BatchSize: 8, Fields: []string{"labels"}}}
			c.opts = Options{Fields: []string{"labels"}, Direct: Direct{src, []string{"images"}}}
			r := c.mustOpen(t)
			if n := len(r.pf.maps[0].pieces); n != 4 {
				t.Errorf("%d pieces, want 4", n)
			}
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				require.NoError(t, r.consume(b, both...))
			}
			require.NoError(t, r.check(src.memory))
			if st := r.pf.Stats(); st.DirectBytes != int64(len(src.images)) || st.StagedBytes != 0 {
				t.Errorf("Stats: %+v", st)
			}
			r.mustClose(t)
		})
	}
}

// piecedSource says that its mapping ends before some records.
type piecedSource struct {
	*mappedSource
	starts []int
}

func (s *piecedSource) Contiguous(_ string, a, b int) bool {
	return !slices.ContainsFunc(s.starts, func(start int) bool { return a < start && start < b })
}
