//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// A library in C finds in the capsule what dlpack.h says, and may delete it from any thread,
// long after the loop body; until then the memory is not given another batch.
func TestDLPack(t *testing.T) {
	src := newSource(30, tensor.Shape{3, 4, 5})
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			c := small(src)
			c.opts.Normalize = map[string]Normalize{"images": {DType: tensor.BFloat16}}
			r := c.mustOpen(t)
			defer r.mustClose(t)
			var held *DLManagedTensor
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				images, labels := dlpack(t, b, "images", r.streams[0]), dlpack(t, b, "labels", r.streams[0])
				checkDLPack(t, images, b.Field("images"), 4, 16)
				checkDLPack(t, labels, b.Field("labels"), 0, 64)
				s := seen{b.Device(), slices.Clone(b.Indices()), make(map[string][]byte)}
				require.NoError(t, r.read(b.Field("labels"), "labels", r.streams[0], s))
				r.seen = append(r.seen, s)
				require.NoError(t, b.Done(r.streams[0]))
				fakeDriver.delete(images)
				if held == nil {
					held = labels
				} else {
					labels.Delete()
				}
				runtime.GC() // nothing of a capsule may be Go's alone
			}
			if n := r.pf.Stats().Held; n != 1 {
				t.Errorf("%d batches held", n)
			}
			checkDLPack(t, held, Tensor{Ptr: held.Data, DType: tensor.Int64, Shape: tensor.Shape{5}}, 0, 64)
			fakeDriver.delete(held)
			if n := r.pf.Stats().Held; n != 0 {
				t.Errorf("%d batches held after all are deleted", n)
			}
			require.NoError(t, r.check(src))
		})
	}
}

func dlpack(t *testing.T, b Batch, field string, stream Stream) *DLManagedTensor {
	t.Helper()
	m, err := b.DLPack(field, stream)
	require.NoError(t, err)
	return m
}

func checkDLPack(t *testing.T, m *DLManagedTensor, want Tensor, code, bits int64) {
	t.Helper()
	var got [24]int64
	fakeDriver.dlpack(m, &got)
	checkDescribed(t, got[:], want, code, bits)
}

func checkDescribed(t *testing.T, got []int64, want Tensor, code, bits int64) {
	t.Helper()
	n := len(want.Shape)
	expect := []int64{2, int64(want.Device), int64(n), code, bits, 1, 0, int64(want.Ptr)}
	for _, d := range want.Shape {
		expect = append(expect, int64(d))
	}
	for i := range want.Shape {
		expect = append(expect, int64(want.Shape[i+1:].Elems()))
	}
	if fmt.Sprint(got[:len(expect)]) != fmt.Sprint(expect) {
		t.Errorf("C reads %v, want %v", got[:len(expect)], expect)
	}
}

func TestDLPackVersioned(t *testing.T) {
	useFake(t, setting{})
	r := small(newSource(30, tensor.Shape{3, 4, 5})).mustOpen(t)
	defer r.mustClose(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		m, err := b.DLPackVersioned("images", r.streams[0])
		require.NoError(t, err)
		runtime.GC()
		step := b.Step()
		var got [24]int64
		fakeDriver.dlpackVersioned(m, &got)
		checkDescribed(t, got[:], b.Field("images"), 1, 8)
		require.NoError(t, b.Done(r.streams[0]))
		if n := r.pf.Stats().Held; n != 1 {
			t.Errorf("%d batches held", n)
		}
		if step%2 == 0 {
			m.Delete()
		} else {
			fakeDriver.deleteVersioned(m)
		}
		if n := r.pf.Stats().Held; n != 0 {
			t.Errorf("%d batches held after the tensor is deleted", n)
		}
	}
}

func TestDLPackLimit(t *testing.T) {
	useFake(t, setting{})
	r := small(newSource(30, tensor.Shape{16})).mustOpen(t)
	defer r.mustClose(t)
	var held []*DLManagedTensor
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		m, err := b.DLPack("images", r.streams[0])
		if len(held) < 2 {
			held = append(held, m)
		} else if !errors.Is(err, ErrKept) {
			t.Errorf("batch %d: %v", b.Step(), err)
		}
	}
	for _, m := range held {
		m.Delete()
		m.Delete()
	}
}

func TestDLCodes(t *testing.T) {
	for dt := tensor.Bool; dt <= tensor.Float64; dt++ {
		want := map[tensor.DType]uint8{
			tensor.Bool: 6, tensor.BFloat16: 4, tensor.Float16: 2, tensor.Float32: 2, tensor.Float64: 2,
			tensor.Uint8: 1, tensor.Uint16: 1, tensor.Uint32: 1, tensor.Uint64: 1,
		}[dt]
		if got := dlCode(dt); got != want {
			t.Errorf("%v: %d, want %d", dt, got, want)
		}
	}
	if size := unsafe.Sizeof(DLManagedTensor{}); size != 64 {
		t.Errorf("the structure has %d bytes, in C 64", size)
	}
	if size := unsafe.Sizeof(DLManagedTensorVersioned{}); size != 80 {
		t.Errorf("the versioned structure has %d bytes, in C 80", size)
	}
}

func TestCopyTo(t *testing.T) {
	useFake(t, setting{lazy: true, withoutCheck: true})
	src := newSource(30, tensor.Shape{16})
	r := small(src).mustOpen(t)
	for b, err := range r.pf.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		got := make([]byte, b.Len()*16)
		require.NoError(t, b.CopyTo(got, "images"))
		require.NoError(t, compare(src, "images", b.Indices(), got))
		if err := b.CopyTo(got[1:], "images"); err == nil {
			t.Error("a copy to too little memory")
		}
	}
	if st := r.pf.Stats(); st.Unfinished != 0 {
		t.Errorf("%d bodies were waited for, though they queued nothing", st.Unfinished)
	}
	r.mustClose(t)
	if st := stats(); st.alive() != 0 || st.faults != 0 || st.pageable != 6 {
		t.Errorf("%+v", st)
	}
}

// A field of variable length arrives with all its rows, and where its records begin.
func TestRagged(t *testing.T) {
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy})
			src := newWords(41)
			c := config{src: src, unpinned: true, opts: Options{Fields: []string{"tokens", "tokens.offsets"}, Prefetch: 1}}
			c.loader.BatchSize = 6
			r := c.mustOpen(t)
			defer r.mustClose(t)
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				require.NoError(t, r.consume(b, "tokens", "tokens.offsets"))
			}
			require.NoError(t, r.devices[0].SynchronizeStream(r.streams[0]))
			for _, s := range r.seen {
				var tokens, offsets []byte
				at := 0
				offsets = binary.LittleEndian.AppendUint64(offsets, 0)
				for _, x := range s.indices {
					for i := range src.length(x) {
						tokens = binary.LittleEndian.AppendUint16(tokens, src.token(x, i))
					}
					at += src.length(x)
					offsets = binary.LittleEndian.AppendUint64(offsets, uint64(at))
				}
				if string(s.fields["tokens"]) != string(tokens) || string(s.fields["tokens.offsets"]) != string(offsets) {
					t.Errorf("records %v have other tokens", s.indices)
				}
			}
		})
	}
}
