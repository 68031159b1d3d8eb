package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/hdf5/chunk"
)

// one is a way to read a file, and how it compares.
type one struct {
	name    string
	file    string
	records int // of the file
	count   int // records that are read in a round; all contenders read the same
	random  bool
	batch   int
	single  bool // the others read one by one, as a map-style dataset of PyTorch does
	open    func(path string) (reader, error)
	bare    func(path string, batch int) (reader, error) // does the same work with no HDF5 around it; nil for nothing
}

const images, small, image = 256, 65536, 3 * 224 * 224

func cases() []one {
	chunks := func(workers, batch int) func(string) (reader, error) {
		return func(path string) (reader, error) { return openChunks(path, workers, batch) }
	}
	gather := func(batch int) func(string) (reader, error) {
		return func(path string) (reader, error) { return openMapped(path, batch) }
	}
	list := []one{
		{"contiguous 150528 B, in order, copy", "flat", images, 4 * images, false, 1, false, gather(1), nil},
		{"contiguous 150528 B, in order, view", "flat", images, 4 * images, false, 1, false, openViews, nil},
		{"contiguous 150528 B, random, copy", "flat", images, 4 * images, true, 1, false, gather(1), nil},
		{"contiguous 150528 B, random, view", "flat", images, 4 * images, true, 1, false, openViews, nil},
		{"contiguous 784 B, random, Gather of one", "small", small, small, true, 1, false, gather(1), nil},
		{"contiguous 784 B, random, Records, copy", "small", small, small, true, 1, false, openRecords, nil},
		{"contiguous 784 B, random, Records, view", "small", small, small, true, 1, false, openViews, nil},
		{"contiguous 784 B, in order, Over, copy", "small", small, small, false, 1, false, openOver, nil},
		{"contiguous 784 B, random, Over, copy", "small", small, small, true, 1, false, openOver, nil},
		{"contiguous 784 B, random, Over, view", "small", small, small, true, 1, false, openOverViews, nil},
		{"contiguous 784 B, random, 32 over 1", "small", small, small, true, 32, true, gather(32), nil},
		{"gzip, 1 a chunk, 1 worker", "one", images, images, true, 1, false, chunks(1, 1), nil},
		{"gzip, 1 a chunk, batch 32, 1 worker", "one", images, images, true, 32, false, chunks(1, 32), nil},
		{"gzip, 1 a chunk, batch 32, 2 workers", "one", images, images, true, 32, false, chunks(2, 32), nil},
		{"gzip+shuffle float32, 1 a chunk", "float", images, images, true, 1, false, chunks(1, 1), nil},
		{"gzip, 32 a chunk, in order", "many", images, images / 2, false, 1, false, chunks(1, 1), nil},
		{"gzip, 32 a chunk, in order, 2 workers", "many", images, images / 2, false, 1, false, chunks(2, 1), nil},
		{"gzip, 32 a chunk, random", "many", images, 16, true, 1, false, chunks(1, 1), nil},
		{"gzip, automatic chunks, in order", "auto", images, images / 4, false, 1, false, chunks(1, 1), nil},
		{"gzip, automatic chunks, random", "auto", images, 8, true, 1, false, chunks(1, 1), nil},
		{"gzip, automatic chunks, batch 32", "auto", images, 64, true, 32, false, chunks(1, 32), nil},
		{name: "index of 65536 chunks, earliest", file: "index-earliest", count: 1},
		{name: "index of 65536 chunks, latest", file: "index-latest", count: 1},
	}
	for i, c := range list {
		switch {
		case strings.HasSuffix(c.name, "copy"):
			list[i].bare = openBytes
		case c.file == "one" && !strings.HasSuffix(c.name, "2 workers"):
			list[i].bare = openInflate
		}
	}
	return list
}

// bareName names the way that does the work of a case without HDF5, the limit of the machine and
// the decoder: no reader of the file takes less.
func (c one) bareName() string {
	if c.file == "one" {
		return chunk.Backend + " alone"
	}
	return "copy() alone"
}

// order is which records a round reads.
func (c one) order(rng *rand.Rand) []int {
	order := make([]int, c.count)
	for i := range order {
		order[i] = i % max(1, c.records)
	}
	if c.random {
		for i := 0; i < len(order); i += c.records {
			part := order[i:min(len(order), i+c.records)]
			copy(part, rng.Perm(c.records))
		}
	}
	return order
}

// turn is how many records a contender reads before the next contender's turn.
func (c one) turn() int { return max(1, min(c.count, max(32, c.count/4/32*32))) }

// bench is the state shared by all cases.
type bench struct {
	dir    string
	peers  []peer
	rounds int
}

// measure returns the times that the contenders took; the first contender is this module.
func (b *bench) measure(c one) ([]measure.Result, error) {
	list, done, err := b.contenders(c)
	defer done()
	if err != nil {
		return nil, err
	}
	return measure.Rounds(b.rounds, c.count, c.turn(), list)
}

// contenders opens the file in all ways. All must read the same bytes.
func (b *bench) contenders(c one) (list []measure.Contender, done func(), err error) {
	var open []reader
	done = func() {
		for _, r := range open {
			r.close()
		}
	}
	path := filepath.Join(b.dir, c.file+".h5")
	if c.open == nil {
		return b.listers(c, path), done, nil
	}
	order := c.order(rand.New(rand.NewPCG(1, 2)))
	ours, err := c.open(path)
	if err != nil {
		return nil, done, err
	}
	open = append(open, ours)
	list = append(list, reading("penstock", ours, order))
	sum, err := ours.sum()
	theirs := c.batch
	if c.single {
		theirs = 1
	}
	for _, p := range b.peers {
		if a, failed := p.Ask(measure.Request{Do: "sum", Set: c.file}); err != nil || failed != nil || a.Sum != sum {
			return nil, done, fmt.Errorf("%s reads other bytes (errors %v, %v)", p.name, err, failed)
		}
		list = append(list, p.reads(c.file, order, theirs))
	}
	if name := gonumName(); name != "" {
		g, err := openGonum(path, c.recordBytes(), theirs)
		if err != nil {
			return nil, done, err
		}
		open = append(open, g)
		list = append(list, reading(name, g, order))
	}
	if c.bare != nil {
		b, err := c.bare(path, c.batch)
		if b == nil || err != nil {
			return list, done, err
		}
		open = append(open, b)
		if got, err := b.sum(); err != nil || got != sum {
			return nil, done, fmt.Errorf("%s makes other bytes (error %v)", c.bareName(), err)
		}
		list = append(list, reading(c.bareName(), b, order))
	}
	return list, done, nil
}

func (c one) recordBytes() int {
	if c.file == "small" {
		return 784
	}
	return image
}

func reading(name string, r reader, order []int) measure.Contender {
	return measure.Contender{Name: name, Do: measure.Timed(func(from, to int) error { return r.read(order[from:to]) })}
}

// listers list the chunks of a file, from scratch.
func (b *bench) listers(c one, path string) []measure.Contender {
	list := []measure.Contender{{Name: "penstock", Do: measure.Timed(func(int, int) error {
		n, err := countChunks(path)
		if err == nil && n != 65536 {
			err = fmt.Errorf("%d chunks", n)
		}
		return err
	})}}
	for _, p := range b.peers {
		if p.index {
			list = append(list, p.lists(c.file))
		}
	}
	return list
}

// rows are the lines of the table: one for each that this module is compared with. That of the bare
// work has a name of its own.
func (c one) rows(results []measure.Result) (rows [][]string) {
	ours := results[0]
	took := time.Duration(ours.Fastest(measure.Wall) * 1e9).Round(time.Nanosecond).String()
	for _, r := range results[1:] {
		best, name := measure.Digits(r.Fastest(measure.Wall)/ours.Fastest(measure.Wall)), c.name
		if c.bare != nil && r.Name == c.bareName() {
			name = "without HDF5: " + name
		}
		rows = append(rows, []string{name, r.Name, r.Over(ours, measure.Wall).String(), r.Over(ours, measure.CPU).String(),
			best, took})
	}
	if len(rows) == 0 {
		rows = append(rows, []string{c.name, "nobody", "", "", "", took})
	}
	return rows
}
