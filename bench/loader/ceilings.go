package main

import (
	"os"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// memory copies or writes as many bytes as a gather does, in one piece a batch, to as many
// buffers by turns as a Loader with one worker has.
type memory struct {
	src, small []byte
	ring       [][]byte
	size       int // bytes that a record has in ring
	n, batch   int // records
	times      int
}

func newMemory(d *dataset, size int) *memory {
	m := &memory{src: make([]byte, d.n*d.size()), small: make([]byte, 1<<15), size: size, n: d.n, batch: d.batch,
		times: d.times}
	for range 4 {
		m.ring = append(m.ring, make([]byte, d.batch*size))
	}
	for i := range m.src {
		m.src[i] = byte(i)
	}
	return m
}

// each calls f for every batch of records.
func (m *memory) each(f func(k int, dst []byte)) measure.Contender {
	return measure.Contender{Do: measure.Repeated(m.times, func() error {
		for k := 0; k < m.n; k += m.batch {
			f(k, m.ring[k/m.batch%len(m.ring)])
		}
		return nil
	})}
}

func (m *memory) copying() measure.Contender {
	c := m.each(func(k int, dst []byte) { copy(dst, m.src[k*m.size:]) })
	c.Name = "copy() of as many bytes, in order"
	return c
}

func (m *memory) writing() measure.Contender {
	c := m.each(func(_ int, dst []byte) {
		for len(dst) > 0 {
			dst = dst[copy(dst, m.small):]
		}
	})
	c.Name = "writing the output bytes once, by copy() from 32 KiB in cache"
	return c
}

func (m *memory) clearing() measure.Contender {
	c := m.each(func(_ int, dst []byte) { clear(dst) })
	c.Name = "the same by clear()"
	return c
}

// gather compares shuffled batches of images, which are only made, with copying memory, and what
// a second worker brings with what a second core does for bare copies.
func (b *bench) gather() error {
	d := b.sets[1]
	list, loaders, err := contenders(d, false, []variant{
		{"penstock, no goroutine", loader.Options{Sampler: sampler.Shuffle{}, Workers: loader.Synchronous, Prefetch: 3}},
		{"penstock, 1 worker", loader.Options{Sampler: sampler.Shuffle{}, Workers: 1}},
		{"penstock, 2 workers", loader.Options{Sampler: sampler.Shuffle{}, Workers: 2}},
	})
	defer closeAll(loaders)
	if err != nil {
		return err
	}
	p, err := newPlain(d)
	if err != nil {
		return err
	}
	list = append(list, newMemory(d, d.size()).copying(), p.workers("copy() of each record, no loader", 1),
		p.workers("the same by two goroutines at once", 2))
	results, err := measure.Rounds(2*b.o.rounds, d.n, d.n, list)
	if err != nil {
		return err
	}
	measure.Lines(os.Stdout, "Gather/150528", "record", results)
	ceiling := results[3]
	rows := [][]string{{"shuffled, 150528-byte records, not touched", "records/s", "GB/s",
		"of copy()'s bandwidth, fastest rounds", "clock", "of copy()'s bandwidth, a core"}}
	for _, r := range results {
		row := append([]string{r.Name}, rate(r, d.size())...)
		rows = append(rows, append(row, fastest(ceiling, r), ceiling.Over(r, measure.Wall).String(),
			ceiling.Over(r, measure.CPU).String()))
	}
	measure.Table(os.Stdout, rows)
	measure.Table(os.Stdout, [][]string{
		{"two workers against one", "fastest rounds", "by the clock", "by what a record costs both"},
		scaling("shuffled gather", results[1], results[2]),
		scaling("two copy() at once against one, no loader", results[4], results[5]),
	})
	return nil
}

// scaling writes how much faster two are than one.
func scaling(name string, one, two measure.Result) []string {
	cost := one.Over(two, measure.CPU)
	both := measure.Ratio{Median: 2 * cost.Median, Low: 2 * cost.Low, High: 2 * cost.High}
	return []string{name, fastest(one, two), one.Over(two, measure.Wall).String(), both.String()}
}

// normalize compares shuffled batches of normalized float32 with writing as many bytes, and
// with the peers.
func (b *bench) normalize() error {
	d := b.sets[1]
	ts, err := normalized()
	if err != nil {
		return err
	}
	list, loaders, err := contenders(d, false, []variant{
		{"penstock, no goroutine", loader.Options{Sampler: sampler.Shuffle{}, Workers: loader.Synchronous, Prefetch: 3,
			Transforms: ts}},
		{"penstock, 1 worker", loader.Options{Sampler: sampler.Shuffle{}, Workers: 1, Transforms: ts}},
		{"penstock, 2 workers", loader.Options{Sampler: sampler.Shuffle{}, Workers: 2, Transforms: ts}},
	})
	defer closeAll(loaders)
	if err != nil {
		return err
	}
	m := newMemory(d, 4*d.size())
	results, err := measure.Rounds(b.o.rounds, d.n, d.n, append(list, m.writing(), m.clearing()))
	if err != nil {
		return err
	}
	measure.Lines(os.Stdout, "Normalize/150528", "record", results)
	rows := [][]string{{"shuffled, normalized to float32, flipped", "records/s", "GB/s written",
		"of the time of writing, fastest rounds", "clock", "of the time of writing, CPU", "of clear(), CPU"}}
	for _, r := range results {
		row := append([]string{r.Name}, rate(r, 4*d.size())...)
		rows = append(rows, append(row, fastest(r, results[3]), r.Over(results[3], measure.Wall).String(),
			r.Over(results[3], measure.CPU).String(), r.Over(results[4], measure.CPU).String()))
	}
	measure.Table(os.Stdout, rows)
	if b.python == nil {
		return nil
	}
	return b.against(d, "shuffled", "normalize", []measure.Contender{list[1], list[0]}, nil)
}
