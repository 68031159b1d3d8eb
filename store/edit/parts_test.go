package edit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// partOf returns the values of a part; after stop of them comes an error, unless stop is 0.
func partOf(f store.Field, p Part, n int64, stop int64) Values {
	from, end := p.Range(n)
	return func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for i := first; i < end-from; i++ {
				if stop > 0 && i == stop {
					yield(nil, errors.New("stopped"))
					return
				}
				if !yield(value(f, 0, int(from+i)), nil) {
					return
				}
			}
		}
	}
}

// A column of parts is that which one call writes, also if a rank was stopped and continued, and was run twice.
func TestParts(t *testing.T) {
	words := store.NewRagged("words", tokens.DType)
	for _, f := range []store.Field{emb, words} {
		folder := t.TempDir()
		ds, whole := filepath.Join(folder, "ds"), filepath.Join(folder, "whole")
		for _, path := range []string{ds, whole} {
			makeDataset(t, path, false, pages)
		}
		const world = 4
		for rank := range world {
			p := Part{rank, world}
			if rank == 2 {
				err := WritePart(ds, f, partOf(f, p, records, 3), p, Options{Journal: &store.Journal{}})
				if err == nil || !strings.Contains(err.Error(), "stopped") {
					t.Fatal(err)
				}
				if _, err := MergeParts(ds, f.Name, Options{}); err == nil || !strings.Contains(err.Error(), "not completed their parts: 2, 3") {
					t.Fatalf("parts that are missing: %v", err)
				}
				first := int64(-1)
				again := func(from int64) iter.Seq2[[]byte, error] { first = from; return partOf(f, p, records, 0)(from) }
				if err := WritePart(ds, f, again, p, Options{Journal: &store.Journal{Resume: true}}); err != nil || first != 3 {
					t.Fatalf("continued at %d: %v", first, err)
				}
				first = -1
				if err := WritePart(ds, f, again, p, Options{Journal: &store.Journal{Resume: true}}); err != nil || first != -1 {
					t.Fatalf("a complete part was continued at %d: %v", first, err)
				}
				continue
			}
			for range 2 {
				if err := WritePart(ds, f, partOf(f, p, records, 0), p, Options{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := AddColumn(whole, f, valuesOf(f, 0), Options{}); err != nil {
			t.Fatal(err)
		}
		m, err := MergeParts(ds, f.Name, Options{By: "a test"})
		if err != nil {
			t.Fatal(err)
		}
		if want, err := store.ReadManifest(whole); err != nil || m.ID != want.ID || m.Change.By != "a test" {
			t.Errorf("the id is %s, want %s: %v", m.ID, want.ID, err)
		}
		left, err := os.ReadDir(folder)
		if err != nil || len(left) != 2 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

func TestPartsThatAreRefused(t *testing.T) {
	ds := filepath.Join(t.TempDir(), "ds")
	makeDataset(t, ds, false, pages)
	write := func(rank, world int, n int64, opts Options) error {
		p := Part{rank, world}
		return WritePart(ds, emb, partOf(emb, p, n, 0), p, opts)
	}
	merge := func(says string) {
		t.Helper()
		if _, err := MergeParts(ds, "emb", Options{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	merge("no rank has written a part of it")
	for _, c := range []struct {
		err  error
		says string
	}{
		{write(2, 2, records, Options{}), "a rank is at least 0 and less than their number"},
		{write(0, 100, records, Options{}), "fewer than ranks"},
		{write(0, 2, records-4, Options{}), "there are 9 values, and the part has 11 records"},
		{write(0, 2, records+4, Options{}), "more than 11 values"},
		{WritePart(ds, pages, nil, Part{0, 1}, Options{}), `it has a column "pages" already`},
		{WritePart(ds, emb, valuesOf(pages, 0), Part{0, 1}, Options{}), "has 4096 bytes, and the field 12"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%v, want %q", c.err, c.says)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(write(0, 2, records, Options{}))
	merge("of 2 ranks, these have not completed their parts: 1")
	must(write(1, 3, records, Options{}))
	merge("there are parts of 2 ranks and of 3: remove those of one")
	must(os.RemoveAll(partPath(ds, "emb", Part{1, 3})))
	_, err := Delete(ds, Chosen{Words: []uint64{1 << 3}}, Options{})
	must(err)
	must(write(1, 2, records-1, Options{}))
	merge("the part of rank 1 is of generation 2")
	must(write(1, 2, records, Options{Of: 1}))
	file := filepath.Join(partPath(ds, "emb", Part{1, 2}), "emb-00000.npy")
	text, err := os.ReadFile(file)
	must(err)
	text[len(text)-1] ^= 1
	must(os.WriteFile(file, text, 0o666))
	merge("corrupt")
	must(write(1, 2, records, Options{Of: 1}))
	m, err := MergeParts(ds, "emb", Options{})
	must(err)
	if m.Generation != 3 || m.Live() != records-1 {
		t.Errorf("generation %d of %d records", m.Generation, m.Live())
	}
}

func ExamplePart_Range() {
	for rank := range 3 {
		fmt.Println(Part{Rank: rank, World: 3}.Range(10))
	}
	// Output:
	// 0 3
	// 3 6
	// 6 10
}

// Parts are read in blocks, whose ends are nowhere to be seen.
func TestValuesOfParts(t *testing.T) {
	many := store.NewRagged("many", tensor.Uint16)
	for _, f := range []store.Field{many, emb} {
		value := func(i int) []byte {
			b := bytes.Repeat(binary.LittleEndian.AppendUint16(nil, uint16(i)), 6)
			if f.Ragged {
				b = b[:2*(i%6)]
			}
			if f.Ragged && i%5000 == 4999 { // larger than a block
				b = make([]byte, partBytes+2)
			}
			return b
		}
		var parts []*mmapds.Dataset
		total := 0
		for _, n := range []int{2*partRecords + 1, 1, partRecords} {
			path := filepath.Join(t.TempDir(), "part")
			schema := store.Schema{Fields: []store.Field{f}}
			w, err := flat.Create(path, schema, flat.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			r := store.NewRecord(schema)
			for range n {
				r.Values[0] = append(r.Values[0][:0], value(total)...)
				if err := w.Append(r); err != nil {
					t.Fatal(err)
				}
				total++
			}
			if _, err := w.Commit(store.Info{}); err != nil {
				t.Fatal(err)
			}
			ds, err := mmapds.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			parts = append(parts, ds)
		}
		for _, first := range []int{0, 1, partRecords, 2*partRecords + 1, 2*partRecords + 2, total - 1, total} {
			i := first
			for v, err := range valuesOfParts(parts)(int64(first)) {
				if err != nil || !bytes.Equal(v, value(i)) {
					t.Fatalf("%s, from %d: value %d has %d bytes: %v", f.Name, first, i, len(v), err)
				}
				i++
			}
			if i != total {
				t.Errorf("%s, from %d: %d of %d values", f.Name, first, i, total)
			}
		}
	}
}
