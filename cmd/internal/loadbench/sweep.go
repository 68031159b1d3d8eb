package loadbench

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/loader"
)

// sweep returns a table in which one parameter is varied.
func sweep(ctx context.Context, o *Options, s *subject, what string) (Table, []*setup) {
	o = o.scaled()
	kind := o.kinds()[0]
	p := progress{o: o, s: s, m: maker{ctx: ctx, work: newWork(kind, o.Delay), out: s.make, seed: o.Seed}}
	t := Table{Name: what, Title: "varied: " + what, vary: what}
	if o.Delay > 0 {
		t.Title += ", " + kindText(kind, o.Delay) + " a record"
	}
	switch what {
	case tableBatch:
		return t, p.sizes()
	case tableWorkers:
		return t, p.workerCounts()
	}
	return t, p.depths()
}

// one returns a persistent setup with an eighth of the batches of other tables.
func (p *progress) one(name string, workers int) *setup {
	s := p.row(name, "", workers)
	s.persistent, s.batches = true, max(8, p.o.Batches/8)
	return s
}

// sizes varies the batch size, with about the same number of records in each row.
func (p *progress) sizes() (rows []*setup) {
	records := max(8, p.o.Batches/8) * p.o.Batch
	for _, n := range []int{16, 32, 64, 128} {
		s := p.one(fmt.Sprint(n), p.o.Workers)
		s.opts.BatchSize, s.batches = min(n, p.s.info.Records), max(2, records/n)
		rows = append(rows, s)
	}
	return rows
}

// workerCounts varies the number of workers.
func (p *progress) workerCounts() []*setup {
	rows := []*setup{p.one("0", loader.Synchronous)}
	for _, n := range []int{1, 2, 4, 8, 16} {
		s := p.one(fmt.Sprint(n), n)
		s.opts.Prefetch = n * p.o.Prefetch
		rows = append(rows, s)
	}
	return rows
}

// depths varies the number of prefetched batches, over all workers.
func (p *progress) depths() (rows []*setup) {
	for _, n := range []int{1, 2, 4, 8, 16} {
		s := p.one(fmt.Sprint(n), p.o.Workers)
		s.opts.Prefetch = n
		rows = append(rows, s)
	}
	return rows
}
