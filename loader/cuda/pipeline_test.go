//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

var both = []string{"images", "labels"}

// The consumer's streams read, however late, the bytes of the Loader: for any number
// of devices and slots, from page-locked and from other memory.
func TestData(t *testing.T) {
	src := newSource(103, tensor.Shape{3, 7, 5})
	for mode, lazy := range modes {
		for _, devices := range []int{1, 3} {
			for _, ahead := range []int{1, 2, 4} {
				for _, unpinned := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/devices=%d/ahead=%d/unpinned=%v", mode, devices, ahead, unpinned), func(t *testing.T) {
						useFake(t, setting{lazy: lazy, devices: devices})
						c := config{src: src, devices: devices, unpinned: unpinned, opts: Options{Fields: both, Prefetch: ahead}}
						c.loader = loader.Options{BatchSize: 8, Sampler: sampler.Shuffle{}, Seed: 5, Workers: 2, Prefetch: 3}
						within(t, func() { testEpochs(t, c, src) })
					})
				}
			}
		}
	}
}

func testEpochs(t *testing.T, c config, src *memory) {
	r := c.mustOpen(t)
	defer r.mustClose(t)
	const epochs = 4
	for epoch := range epochs {
		step := 0
		for b, err := range r.pf.Epoch(t.Context(), epoch) {
			if err != nil {
				t.Error(err)
				return
			}
			if b.Step() != step || b.Epoch() != epoch || b.Len() != len(b.Indices()) || len(b.Mask()) != b.Len() {
				t.Errorf("batch %d of epoch %d says %d of %d, %d records", step, epoch, b.Step(), b.Epoch(), b.Len())
			}
			if err := r.consume(b, both...); err != nil {
				t.Error(err)
				return
			}
			step++
		}
	}
	require.NoError(t, r.check(src))
	checkOrder(t, r, c, src, epochs)
	checkStats(t, r, c, src, epochs)
}

// checkOrder compares the records with those of the Loader alone.
func checkOrder(t *testing.T, r *rig, c config, src *memory, epochs int) {
	c.loader.Allocator = nil
	ld, err := loader.New(src, c.loader)
	if err != nil {
		t.Error(err)
		return
	}
	defer ld.Close()
	i := 0
	for epoch := range epochs {
		for b, err := range ld.Epoch(context.Background(), epoch) {
			if err != nil || i >= len(r.seen) || !slices.Equal(b.Indices(), r.seen[i].indices) {
				t.Errorf("batch %d of epoch %d differs from the Loader's", b.Step(), epoch)
				return
			}
			i++
		}
	}
	if i != len(r.seen) {
		t.Errorf("%d batches; the Loader has %d", len(r.seen), i)
	}
}

func checkStats(t *testing.T, r *rig, c config, src *memory, epochs int) {
	st := r.pf.Stats()
	bytes := int64(epochs) * int64(len(src.images)+len(src.labels))
	pinned, staged := bytes, int64(0)
	if c.unpinned {
		pinned, staged = 0, bytes
	}
	if st.PinnedBytes != pinned || st.StagedBytes != staged || st.DirectBytes != 0 {
		t.Errorf("%d bytes in all; Stats: %+v", bytes, st)
	}
	if st.Batches != len(r.seen) || st.Records != epochs*src.n || st.Copies != 2*len(r.seen) || st.Unfinished != 0 || st.Held != 0 {
		t.Errorf("%d batches; Stats: %+v", len(r.seen), st)
	}
	if st.LockedBytes == 0 || st.DeviceBytes == 0 {
		t.Errorf("no memory in Stats: %+v", st)
	}
}

// Epochs gives what one Epoch after the other does, also where inner loops are left early or
// not begun.
func TestEpochs(t *testing.T) {
	src := newSource(40, tensor.Shape{64})
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			c := config{src: src, opts: Options{Fields: both}, loader: loader.Options{BatchSize: 7, Sampler: sampler.Shuffle{}}}
			r := c.mustOpen(t)
			defer r.mustClose(t)
			within(t, func() {
				var got []string
				for epoch, batches := range r.pf.Epochs(t.Context(), 5) {
					got = append(got, fmt.Sprint("epoch ", epoch))
					if epoch == 2 {
						continue
					}
					for b, err := range batches {
						if err != nil {
							t.Error(err)
							return
						}
						got = append(got, fmt.Sprint(b.Epoch(), ".", b.Step()))
						if err := r.consume(b, both...); err != nil {
							t.Error(err)
						}
						if epoch == 1 && b != (Batch{}) && len(got) == 10 {
							break
						}
					}
				}
				want := "[epoch 0 0.0 0.1 0.2 0.3 0.4 0.5 epoch 1 1.0 1.1 epoch 2 epoch 3 3.0 3.1 3.2 3.3 3.4 3.5 epoch 4 4.0 4.1 4.2 4.3 4.4 4.5]"
				if fmt.Sprint(got) != want {
					t.Errorf("got  %v\nwant %v", got, want)
				}
				if err := r.check(src); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// State is the consumer's, not that of the batches on their way: a Loader that resumes there
// gives the very next batch.
func TestState(t *testing.T) {
	src := newSource(50, tensor.Shape{16})
	useFake(t, setting{})
	opts := loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}, Seed: 9}
	r := config{src: src, opts: Options{Fields: both, Prefetch: 3}, loader: opts}.mustOpen(t)
	defer r.mustClose(t)
	var all [][]int
	states := []loader.State{r.pf.State()}
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		all = append(all, slices.Clone(b.Indices()))
		states = append(states, r.pf.State())
		require.NoError(t, b.Done(r.streams[0]))
	}
	for i, st := range states[:len(states)-1] {
		ld, err := loader.Resume(src, opts, st)
		require.NoError(t, err)
		for b, err := range ld.Epoch(t.Context(), 0) {
			if err != nil || !slices.Equal(b.Indices(), all[i]) {
				t.Errorf("after %d batches: resumed at %v", i, b.Indices())
			}
			break
		}
		require.NoError(t, ld.Close())
	}
	if last := states[len(states)-1]; last.Epoch != 1 || last.Step != 0 {
		t.Errorf("after the epoch: %+v", last)
	}
}

// A batch that is larger than those before it gets memory of its size.
func TestGrowing(t *testing.T) {
	src := newSource(10, tensor.Shape{100})
	useFake(t, setting{lazy: true})
	opts := loader.Options{BatchSize: 4}
	ld, err := loader.New(src, opts)
	require.NoError(t, err)
	st := ld.State()
	require.NoError(t, ld.Close())
	st.Step = 2 // two records are left
	r := config{src: src, unpinned: true, opts: Options{Fields: both, Prefetch: 1}, loader: opts}.mustOpen(t)
	defer r.mustClose(t)
	require.NoError(t, r.pf.Close())
	require.NoError(t, r.ld.Close())
	if r.ld, err = loader.Resume(src, opts, st); err != nil {
		t.Fatal(err)
	}
	if r.pf, err = New(r.ld, Options{Devices: r.devices, Fields: both, Prefetch: 1}); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for epoch := range 2 {
		for b, err := range r.pf.Epoch(t.Context(), epoch) {
			require.NoError(t, err)
			sizes = append(sizes, b.Len())
			require.NoError(t, r.consume(b, both...))
		}
	}
	if !slices.Equal(sizes, []int{2, 4, 4, 2}) {
		t.Errorf("batches of %v", sizes)
	}
	require.NoError(t, r.check(src))
}
