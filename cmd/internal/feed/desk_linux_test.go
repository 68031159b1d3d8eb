package feed

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// The position that a batch reports is that of the state after it, and all offsets suit a cache line.
func TestPut(t *testing.T) {
	sub, err := newSubject(t.Context(), new(datasetarg.Cache), []string{makeDataset(t, true)}, &Options{BatchSize: 7, NumWorkers: 1}, nil, nil)
	require.NoError(t, err)
	defer sub.Close()
	a := arenaOf(t)
	defer a.Close()
	ld, err := loader.New(sub.src, sub.options)
	require.NoError(t, err)
	defer ld.Close()
	d, err := newDesk(a, sub, false, 2, 7)
	require.NoError(t, err)
	defer d.Close()
	for range 2 {
		<-d.free
	}
	for b, err := range ld.Epoch(t.Context(), 3) {
		require.NoError(t, err)
		out, err := d.put(1, b, loader.State{Epoch: 8, Step: 9, Done: "a5"})
		require.NoError(t, err)
		if out.Slot != 1 || out.Count != b.Len() || out.Epoch != 3 || out.Step != b.Step() || out.Next != [2]int{8, 9} || out.Done != "a5" || out.Size != a.bytes() {
			t.Errorf("%+v", out)
		}
		offsets := []int64{out.Indices, out.Mask}
		for _, f := range out.Fields {
			offsets = append(offsets, f.At, f.Offsets)
		}
		for _, at := range offsets {
			if at%64 != 0 || at >= out.Size {
				t.Errorf("offset %d in a file of %d bytes", at, out.Size)
			}
		}
		require.NoError(t, d.release([]int{1}))
		if err := d.release([]int{1}); err == nil || !strings.Contains(err.Error(), "slot 1, in which it has no batch") {
			t.Errorf("a slot that is given back twice: %v", err)
		}
		<-d.free
	}
}

// The ends of packed records come with a batch.
func TestPackedBatches(t *testing.T) {
	c := dial(t.Context(), t, makeDataset(t, true))
	w := c.greet(`{"batch_size":3,"pack":{"length":100}}`)
	c.start()
	b := c.receive().Batch
	if b == nil || b.CuSeqlens == nil || w.Records >= records {
		t.Fatalf("%+v of %+v", b, w)
	}
	ends := c.read(b.CuSeqlens.At, 4*b.CuSeqlens.Rows)
	last := 0
	for i := 0; i < len(ends); i += 4 {
		end := int(binary.NativeEndian.Uint32(ends[i:]))
		if end < last || i == 0 && end != 0 || i > 0 && end == last {
			t.Errorf("the end at %d is %d, after %d", i/4, end, last)
		}
		last = end
	}
	if last != 300 {
		t.Errorf("the last record ends at %d of 300", last)
	}
}

// A client can neither shrink the memory that others map, nor connect as another user.
func TestWhatClientsCannot(t *testing.T) {
	c := dial(t.Context(), t, makeDataset(t, false))
	c.greet(`{"batch_size":3}`)
	if err := unix.Ftruncate(int(c.memory.Fd()), 0); err == nil {
		t.Error("the shared memory can be shrunk")
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := listenAlone(path)
	require.NoError(t, err)
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Batches that take more than 16 GiB are refused before memory is asked for; fields of variable length do not count.
func TestLargestBatch(t *testing.T) {
	fields := []served{{Field: store.NewField("x", tensor.Uint8, 1<<20-9)}, {Field: store.NewRagged("t", tensor.Int64)}}
	s := &session{subject: &subject{fields: fields}}
	require.NoError(t, s.checkBatch(16<<10))
	if err := s.checkBatch(16<<10 + 1); err == nil || !strings.Contains(err.Error(), "16385 records of 1048576 bytes takes more than 17179869184; lower batch_size") {
		t.Error(err)
	}
}
