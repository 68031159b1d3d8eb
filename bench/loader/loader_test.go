package main

import (
	"bytes"
	"path/filepath"
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

// Loops without a Loader copy each record to its place.
func TestPlain(t *testing.T) {
	d := small(t)
	p, err := newPlain(d)
	if err != nil {
		t.Fatal(err)
	}
	ring := p.ring()
	p.gather(ring)
	last := d.n/d.batch - 1
	got, want := ring[last%len(ring)][d.size():], p.order[last*d.batch+1]
	if v, err := d.ds.Slice("x", want, want+1); err != nil || !bytes.HasPrefix(got, v.Bytes()) {
		t.Errorf("the second record of the last batch is another, %v", err)
	}
	for _, c := range []measure.Contender{p.reading(), p.copying()} {
		if s, err := c.Do(0, d.n); err != nil || s.Wall <= 0 {
			t.Errorf("%s: %+v, %v", c.Name, s, err)
		}
	}
}
