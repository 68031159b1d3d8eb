package main

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"time"
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
	index   bool // list chunks instead
}

const images, small, image = 256, 65536, 3 * 224 * 224

func cases(slowIndex bool) []one {
	mapped := func(batch int, view bool) func(string) (reader, error) {
		return func(path string) (reader, error) { return openMapped(path, batch, view) }
	}
	chunks := func(workers, batch int) func(string) (reader, error) {
		return func(path string) (reader, error) { return openChunks(path, workers, batch) }
	}
	list := []one{
		{"contiguous 150528 B, in order, copy", "flat", images, 4 * images, false, 1, false, mapped(1, false), false},
		{"contiguous 150528 B, in order, view", "flat", images, 4 * images, false, 1, false, mapped(1, true), false},
		{"contiguous 150528 B, random, copy", "flat", images, 4 * images, true, 1, false, mapped(1, false), false},
		{"contiguous 150528 B, random, view", "flat", images, 4 * images, true, 1, false, mapped(1, true), false},
		{"contiguous 784 B, random, copy", "small", small, small, true, 1, false, mapped(1, false), false},
		{"contiguous 784 B, random, 32 over 1", "small", small, small, true, 32, true, mapped(32, false), false},
		{"gzip, 1 a chunk, 1 worker", "one", images, images, true, 1, false, chunks(1, 1), false},
		{"gzip, 1 a chunk, batch 32, 1 worker", "one", images, images, true, 32, false, chunks(1, 32), false},
		{"gzip, 1 a chunk, batch 32, 2 workers", "one", images, images, true, 32, false, chunks(2, 32), false},
		{"gzip+shuffle float32, 1 a chunk", "float", images, images, true, 1, false, chunks(1, 1), false},
		{"gzip, 32 a chunk, in order", "many", images, images / 2, false, 1, false, chunks(1, 1), false},
		{"gzip, 32 a chunk, random", "many", images, 16, true, 1, false, chunks(1, 1), false},
		{"gzip, automatic chunks, in order", "auto", images, images / 4, false, 1, false, chunks(1, 1), false},
		{"gzip, automatic chunks, random", "auto", images, 8, true, 1, false, chunks(1, 1), false},
		{"gzip, automatic chunks, batch 32", "auto", images, 64, true, 32, false, chunks(1, 32), false},
	}
	for _, libver := range []string{"earliest", "latest"} {
		if !slowIndex {
			list = append(list, one{name: "index of 65536 chunks, " + libver, file: "index-" + libver, index: true})
		}
	}
	return list
}

// spent is what a piece of work took, in seconds.
type spent struct{ wall, cpu float64 }

// timed measures f.
func timed(f func() error) (spent, error) {
	wall, cpu := time.Now(), processTime()
	err := f()
	return spent{time.Since(wall).Seconds(), processTime() - cpu}, err
}

func processTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// contender does the work once.
type contender struct {
	name string
	run  func(order []int) (spent, error)
}

// measure runs the rounds and prints a line for each that this module is compared with.
func (c one) measure(dir string, p *peer, rounds int, w io.Writer) error {
	list, done, err := c.contenders(filepath.Join(dir, c.file+".h5"), p)
	if err != nil {
		return err
	}
	defer done()
	times := make([][]spent, len(list))
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range rounds + 1 { // the first only warms up
		order := c.order(rng)
		for k := range list {
			i := (k + round) % len(list)
			s, err := list[i].run(order)
			if err != nil {
				return fmt.Errorf("%s: %w", list[i].name, err)
			}
			if round > 0 {
				times[i] = append(times[i], s)
			}
		}
	}
	for i := 1; i < len(list); i++ {
		wall := ratios(times[i], times[0], func(s spent) float64 { return s.wall })
		cpu := ratios(times[i], times[0], func(s spent) float64 { return s.cpu })
		best := fastest(times[i]) / fastest(times[0])
		fmt.Fprintf(w, "%-36s %-6s %-24s %-24s %6.2fx %9.3f ms\n", c.name, list[i].name, wall, cpu, best, 1e3*fastest(times[0]))
	}
	return nil
}

// fastest returns the shortest time of the clock.
func fastest(times []spent) float64 {
	return slices.MinFunc(times, func(a, b spent) int { return cmp.Compare(a.wall, b.wall) }).wall
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

// contenders opens the file three ways; the first is ours. All must read the same bytes.
func (c one) contenders(path string, p *peer) (list []contender, done func(), err error) {
	if c.index {
		return c.indexers(path, p), func() {}, nil
	}
	ours, err := c.open(path)
	if err != nil {
		return nil, nil, err
	}
	record, theirs := image, c.batch
	if c.single {
		theirs = 1
	}
	if c.file == "small" {
		record = 784
	}
	g, err := openGonum(path, record, theirs)
	if err != nil {
		return nil, nil, err
	}
	sum, err := ours.sum()
	if err != nil {
		return nil, nil, err
	}
	if a, err := p.ask(question{Kind: "sum", File: c.file}); err != nil || a.Sum != sum {
		return nil, nil, fmt.Errorf("h5py reads other bytes (error %v)", err)
	}
	list = []contender{
		{"penstock", func(order []int) (spent, error) { return timed(func() error { return ours.read(order) }) }},
		{"h5py", p.reader(question{Kind: "read", File: c.file, Batch: theirs})},
		{"gonum", func(order []int) (spent, error) { return timed(func() error { return g.read(order) }) }},
	}
	return list, func() { ours.close(); g.close() }, nil
}

func (p *peer) reader(q question) func(order []int) (spent, error) {
	return func(order []int) (spent, error) {
		q.Order = order
		a, err := p.ask(q)
		return spent{a.Wall, a.CPU}, err
	}
}

func (c one) indexers(path string, p *peer) []contender {
	ours := func([]int) (s spent, err error) {
		return timed(func() error {
			n, err := countChunks(path)
			if err == nil && n != 65536 {
				err = fmt.Errorf("%d chunks", n)
			}
			return err
		})
	}
	return []contender{{"penstock", ours}, {"h5py", p.reader(question{Kind: "index", File: c.file})}}
}

// ratios is how many times as long one took as ours in each round: median, lowest, highest.
func ratios(one, ours []spent, of func(spent) float64) string {
	var list []float64
	for i := range one {
		if t := of(ours[i]); t > 0 {
			list = append(list, of(one[i])/t)
		}
	}
	if len(list) == 0 {
		return "too short to tell"
	}
	slices.Sort(list)
	return fmt.Sprintf("%6.2fx [%.2f..%.2f]", list[len(list)/2], list[0], list[len(list)-1])
}
