package mmapds_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
)

// backwards is an order with leaps and repeats.
func backwards(n int) (order []int) {
	for i := range n {
		order = append(order, n-1-i, i*7%n)
	}
	return order
}

func records(t testing.TB, ds *mmapds.Dataset, field string) *mmapds.Records {
	t.Helper()
	r, err := ds.Records(field)
	require.NoError(t, err)
	return r
}

// checkOver compares what Over yields with what Run gives.
func checkOver(t *testing.T, ds *mmapds.Dataset, field string, order []int) {
	t.Helper()
	k := 0
	for got, err := range records(t, ds, field).Iter(order) {
		if err != nil {
			t.Fatalf("%s: place %d: %v", field, k, err)
		}
		want, err := ds.Slice(field, order[k], order[k]+1)
		if err != nil || !bytes.Equal(got, want.Bytes()) || cap(got) != len(got) {
			t.Fatalf("%s: record %d at place %d differs, error %v", field, order[k], k, err)
		}
		k++
	}
	if k != len(order) {
		t.Errorf("%s: %d records of %d", field, k, len(order))
	}
}

// Iter gives what Run gives, over shards, with checks and without.
func TestIter(t *testing.T) {
	path := build(t, 1100)
	for _, checks := range []mmapds.VerifyMode{mmapds.VerifyOff, mmapds.VerifyFirstTouch, mmapds.VerifyAlways} {
		ds := openChecked(t, path, checks)
		for _, spec := range ds.Specs() {
			checkOver(t, ds, spec.Name, backwards(1100))
			checkOver(t, ds, spec.Name, nil)
		}
	}
}

func TestIterPacked(t *testing.T) {
	ds := open(t, h5test.File(t, packedScript))
	defer ds.Close()
	for _, spec := range ds.Specs() {
		checkOver(t, ds, spec.Name, backwards(ds.Len()))
	}
}

// A record that does not exist is an error in its turn, and the last thing that is yielded.
func TestIterRefuses(t *testing.T) {
	ds := open(t, build(t, 10))
	images := records(t, ds, "images")
	for _, bad := range []int{-1, 10, 1 << 62} {
		var got []error
		for _, err := range images.Iter([]int{1, 2, bad, 3}) {
			got = append(got, err)
		}
		if len(got) != 3 || got[0] != nil || got[1] != nil || got[2] == nil {
			t.Errorf("record %d: %v", bad, got)
		}
	}
	n := 0
	for _, err := range images.Iter([]int{1, 2, 3, 4}) {
		if n++; n == 2 {
			err = ds.Close()
		}
		if want := mmapds.ErrClosed; n <= 2 && err != nil || n > 2 && !errors.Is(err, want) {
			t.Errorf("place %d: %v", n, err)
		}
	}
	if n != 3 {
		t.Errorf("%d records", n)
	}
	for _, err := range images.Iter([]int{1}) {
		if !errors.Is(err, mmapds.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestIterAllocatesNothing(t *testing.T) {
	ds := open(t, build(t, 100))
	defer ds.Close()
	images, order, n := records(t, ds, "images"), backwards(100), 0
	allocs := testing.AllocsPerRun(20, func() {
		for b := range images.Iter(order) {
			n += len(b)
		}
	})
	if allocs != 0 || n == 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// Records in the order that is known.
func ExampleRecords_Iter() {
	ds, done := openSquares()
	defer done()
	squares, err := ds.Records("squares")
	if err != nil {
		log.Fatal(err)
	}
	for record, err := range squares.Iter([]int{7, 2, 7}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record)
	}
	// Output:
	// [7 0 0 0 49 0 0 0]
	// [2 0 0 0 4 0 0 0]
	// [7 0 0 0 49 0 0 0]
}
