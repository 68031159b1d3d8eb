package mmapds_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
)

// At gives what Run gives, over shards, with checks and without.
func TestRecordsAreThoseOfRun(t *testing.T) {
	path := build(t, 1100)
	for _, mode := range []mmapds.VerifyMode{mmapds.VerifyOff, mmapds.VerifyFirstTouch} {
		ds, err := mmapds.Open(path, mmapds.WithVerify(mode))
		require.NoError(t, err)
		defer ds.Close()
		for _, spec := range ds.Specs() {
			r, err := ds.Records(spec.Name)
			if err != nil || r.Len() != ds.Len() {
				t.Fatalf("%d records, error %v", r.Len(), err)
			}
			for i := range ds.Len() {
				want, err := ds.Slice(spec.Name, i, i+1)
				require.NoError(t, err)
				if got, err := r.At(i); err != nil || !bytes.Equal(got, want.Bytes()) || cap(got) != len(got) {
					t.Fatalf("%s: record %d differs, error %v", spec.Name, i, err)
				}
			}
		}
	}
}

func TestRecordsRefused(t *testing.T) {
	ds, err := mmapds.Open(build(t, 10))
	require.NoError(t, err)
	if _, err := ds.Records("nothing"); err == nil {
		t.Error("a field that is not there")
	}
	r, err := ds.Records("images")
	require.NoError(t, err)
	for _, i := range []int{-1, 10, 1 << 62} {
		if _, err := r.At(i); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("record %d of 10", i)) {
			t.Errorf("error %v", err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = r.At(3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	require.NoError(t, ds.Close())
	for _, i := range []int{3, -1} {
		if _, err := r.At(i); !errors.Is(err, mmapds.ErrClosed) {
			t.Errorf("error %v after Close", err)
		}
	}
}

// Records one at a time, by number.
func ExampleDataset_Records() {
	ds, done := openSquares()
	defer done()
	squares, err := ds.Records("squares")
	if err != nil {
		log.Fatal(err)
	}
	for _, i := range []int{7, 2} {
		record, err := squares.At(i)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record)
	}
	// Output:
	// [7 0 0 0 49 0 0 0]
	// [2 0 0 0 4 0 0 0]
}

// One record of 784 bytes at a time, in random order, copied: by At, Run and Gather, and out of
// a slice of all, which is the bound.
func BenchmarkOneRecord(b *testing.B) {
	const size = 784
	ds := openChecked(b, bytesDataset(b, size, 48<<20), mmapds.VerifyOff)
	require.NoError(b, ds.Warm("x", 0, ds.Len()))
	r, err := ds.Records("x")
	require.NoError(b, err)
	dst := make([]byte, size)
	all, err := ds.Slice("x", 0, ds.Len())
	require.NoError(b, err)
	one := []int{0}
	for name, f := range map[string]func(i int) error{
		"At": func(i int) error {
			v, err := r.At(i)
			copy(dst, v)
			return err
		},
		"slice": func(i int) error {
			copy(dst, all.Bytes()[i*size:])
			return nil
		},
		"Run": func(i int) error {
			v, err := ds.Slice("x", i, i+1)
			copy(dst, v.Bytes())
			return err
		},
		"Gather": func(i int) error {
			one[0] = i
			return ds.Gather(b.Context(), "x", one, dst)
		},
	} {
		b.Run(name, func(b *testing.B) {
			i := 1
			for b.Loop() {
				i = i * 48271 % 2147483647
				require.NoError(b, f(i%ds.Len()))
			}
		})
	}
}
