package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

func small(t *testing.T) *dataset {
	t.Helper()
	d := &dataset{name: "small", n: 40, shape: tensor.Shape{3, 8, 8}, batch: 4, times: 2}
	path := filepath.Join(t.TempDir(), d.name)
	if err := d.write(path); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.ds, err = mmapds.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.ds.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// A round is as many epochs as it should be, in order without a copy and shuffled with all.
func TestContenders(t *testing.T) {
	d := small(t)
	ts, err := normalized()
	if err != nil {
		t.Fatal(err)
	}
	list, loaders, err := contenders(d, true, []variant{
		{"in order", loader.Options{}},
		{"shuffled", loader.Options{Sampler: sampler.Shuffle{}}},
		{"normalized", loader.Options{Sampler: sampler.Shuffle{}, Transforms: ts}},
	})
	defer closeAll(loaders)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := measure.Rounds(1, d.n, d.n, list); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"0", "768", "3072"} {
		if st := loaders[i].Stats(); st.Records != 2*2*d.n || copied(loaders[i]) != want {
			t.Errorf("%s: %d records, %s bytes copied a batch, want %s", list[i].Name, st.Records, copied(loaders[i]), want)
		}
	}
}

// Ceilings write as much as a gather: the last batch is in the ring.
func TestMemory(t *testing.T) {
	d := small(t)
	m := newMemory(d, d.size())
	for _, c := range []measure.Contender{m.writing(), m.clearing(), m.copying()} {
		if _, err := c.Do(0, d.n); err != nil {
			t.Fatal(err)
		}
	}
	last := (d.n/d.batch - 1) % len(m.ring)
	if got, want := m.ring[last][5], m.src[(d.n-d.batch)*d.size()+5]; got != want {
		t.Errorf("byte %d, want %d", got, want)
	}
}

// Loops without a Loader copy each record to its place, whichever goroutine makes the batch.
func TestPlain(t *testing.T) {
	d := small(t)
	p, err := newPlain(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2} {
		rings := [][][]byte{p.ring(n), p.ring(n)}
		for i := range n {
			p.gather(rings[i], i, n, true)
		}
		last := d.n/d.batch - 1
		got := rings[last%n][last/n%len(rings[0])][d.size():]
		want := p.order[last*d.batch+1]
		if v, err := d.ds.Slice("x", want, want+1); err != nil || !bytes.HasPrefix(got, v.Bytes()) {
			t.Errorf("%d goroutines: the second record of the last batch is another, %v", n, err)
		}
	}
	for _, c := range []measure.Contender{p.reading(), p.copying(), p.workers("two", 2)} {
		if s, err := c.Do(0, d.n); err != nil || s.Wall <= 0 {
			t.Errorf("%s: %+v, %v", c.Name, s, err)
		}
	}
}

// Each way of verifying reads all records, and compares those that it says.
func TestVerifying(t *testing.T) {
	d := small(t)
	rows, err := verifying(*d, d.ds.Files().Path, 2)
	if err != nil || len(rows) != 4 {
		t.Fatalf("%q, %v", rows, err)
	}
	for _, row := range rows {
		if len(row) != 4 || !strings.HasPrefix(row[0], "small-byte records, ") {
			t.Errorf("%q", row)
		}
	}
}
