package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// dataset is the source of batches.
type dataset struct {
	name  string
	n     int // records
	shape tensor.Shape
	batch int // records
	times int // epochs that penstock does in a round, so that it can be measured
	ds    *mmapds.Dataset
}

func (d dataset) size() int { return d.shape[0] * d.shape[1] * d.shape[2] }

func (d dataset) path(b *bench) string { return filepath.Join(b.dir, d.name) }

// bench is a run of this program.
type bench struct {
	o          options
	dir        string
	sets       []*dataset
	python     *measure.Child // or nil
	pythonText string
	peerWays   []measure.Way
}

// The datasets are larger than the CPU's cache and smaller than memory.
func datasets() []*dataset {
	return []*dataset{
		{name: "784", n: 1 << 16, shape: tensor.Shape{1, 28, 28}, batch: 256, times: 16},
		{name: "150528", n: 1 << 11, shape: tensor.Shape{3, 224, 224}, batch: 64, times: 4},
	}
}

func newBench(o options) (_ *bench, err error) {
	b := &bench{o: o, sets: datasets()}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp(o.dir, "penstock-bench-"); err != nil {
		return nil, err
	}
	for _, d := range b.sets {
		if err := d.write(d.path(b)); err != nil {
			return nil, err
		}
		if d.ds, err = mmapds.Open(d.path(b)); err != nil {
			return nil, err
		}
	}
	return b, b.startPython()
}

// write makes the dataset.
func (d dataset) write(path string) error {
	f := store.NewField("x", tensor.Uint8, d.shape...)
	f.Layout = tensor.CHW
	return measure.Dataset(path, f, d.n, measure.Noise())
}

func (b *bench) startPython() (err error) {
	var a measure.Answer
	b.python, a, err = measure.StartPeers(b.o.python, b.o.peers, "records.py", b.dir)
	b.pythonText, b.peerWays = a.Text, a.Ways
	return err
}

func (b *bench) close() {
	if b.python != nil {
		b.python.Close()
	}
	for _, d := range b.sets {
		if d.ds != nil {
			_ = d.ds.Close() // it was only read
		}
	}
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

// rate writes records a second and their bytes, in the fastest round.
func rate(r measure.Result, size int) []string {
	s := 1 / r.Fastest(measure.Wall)
	return []string{fmt.Sprintf("%.3g", s), fmt.Sprintf("%.2f", s*float64(size)/1e9)}
}

// fastest writes how many times as long as base r took by the clock, each in its fastest round.
func fastest(r, base measure.Result) string {
	return measure.Digits(r.Fastest(measure.Wall) / base.Fastest(measure.Wall))
}
