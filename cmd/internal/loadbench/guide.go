package loadbench

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/loader/sampler"
)

// guide returns the table of the configuration guide: epochs of a training loop whose steps take a
// while, in several configurations.
func guide(ctx context.Context, o *Options, s *subject, kind string) (Table, []*setup) {
	o = o.scaled()
	p := progress{o: o, s: s, m: maker{ctx: ctx, work: newWork(kind, o.Delay), out: s.make, seed: o.Seed}}
	name, title := tableGuide+"-"+kind,
		fmt.Sprintf("waiting for batches, %v a training step, %d epochs of up to %d batches of %d records",
			o.TrainStep, o.Epochs, o.Batches, o.Batch)
	if o.Delay > 0 {
		title += ", " + kindText(kind, o.Delay) + " a record"
	}
	rows := []*setup{p.baseline(), p.pool("1 worker", 1, 1, eachEpoch),
		p.pool(fmt.Sprintf("%d workers", o.Workers), o.Workers, 1, eachEpoch),
		p.pool(fmt.Sprintf("%d workers, prefetch %d", o.Workers, o.Prefetch), o.Workers, o.Prefetch, forAll),
		p.pool("32 workers, prefetch 3", 32, 3, forAll)}
	rows[3].diagnosed = true
	rows = append(rows, p.precomputed()...)
	for _, s := range rows {
		s.batches, s.epochs, s.step = 0, o.Epochs, o.TrainStep
		s.opts.Sampler = capped{s.opts.Sampler, o.Batches * o.Batch}
	}
	return Table{Name: name, Title: title, guide: true, Notes: p.guideNotes()}, rows
}

// lifetime says how long the workers of a setup live.
type lifetime int

const (
	eachEpoch lifetime = iota // they are made anew for each epoch
	forAll
)

// pool returns a setup with workers. prefetch is per worker, as in PyTorch.
func (p *progress) pool(name string, workers, prefetch int, life lifetime) *setup {
	s := p.row(name, "", workers)
	s.opts.Prefetch, s.persistent = workers*prefetch, life == forAll
	if life == eachEpoch {
		s.note = "rebuilt for each epoch"
	}
	return s
}

// guideNotes returns the guide's own results, for comparison.
func (p *progress) guideNotes() []string {
	notes := []string{"Published by the guide, for batches of 4 of cloud data, its best (32 workers, prefetch 3, " +
		"persistent) against its baseline:",
		"mean wait 1.384 s to 0.0126 s; epochs 2225.8 s to 168.7 s; set-up 5.6 s to 208.6 s; the whole run 2231 s to 377 s " +
			"(5.9x; its 35x leaves set-up out)."}
	if p.m.work.delay > 0 || p.m.generates() {
		once := "The precomputed rows leave the preparation out"
		if p.s.once > 0 {
			once += fmt.Sprintf(", which took %.1f s without its work", p.s.once.Seconds())
		}
		notes = append(notes, once+".")
	}
	return notes
}

// against compares the best row with the first, as the guide does, and also the whole run, which
// the guide leaves out.
func (t *Table) against() string {
	var base *Result
	for i := range t.Rows {
		if base == nil && t.Rows[i].Ran() {
			base = &t.Rows[i]
		}
	}
	best := t.best(1)
	switch {
	case base == nil || best == nil:
		return ""
	case best == base:
		return "No row is faster than " + base.Name + "."
	}
	ratio := func(a, b float64) float64 { return a / max(1e-9, b) }
	return fmt.Sprintf("%s against %s: mean wait %s to %s (%.1fx), first batch %s to %s, epochs %s to %s (%.2fx), the "+
		"whole run %s to %s (%.2fx).",
		best.Name, base.Name, short(base.Wait.Mean), short(best.Wait.Mean),
		ratio(base.Wait.Mean.Seconds(), best.Wait.Mean.Seconds()),
		short(base.FirstBatch), short(best.FirstBatch), short(base.epochs()), short(best.epochs()),
		ratio(base.epochs().Seconds(), best.epochs().Seconds()),
		short(base.Total), short(best.Total), ratio(base.Total.Seconds(), best.Total.Seconds()))
}

// guideCells returns a line of the guide's table, in the order of guideHead.
func (r *Result) guideCells() []string {
	if !r.Ran() {
		return []string{r.Name, "n/a"}
	}
	return []string{r.Name, short(r.Total), fmt.Sprintf("%.2fx", r.SpeedUp), short(r.epochs()), short(r.FirstBatch),
		short(r.Wait.Mean),
		short(r.Wait.P50), short(r.Wait.P95), short(r.Wait.P99),
		fmt.Sprintf("%.0f %%", 100*r.Waited.Seconds()/max(1e-9, r.Loop.Seconds())), fmt.Sprintf("%.0f %%", 100*r.Limit)}
}

var guideHead = []string{"", "total", "speed-up", "epochs", "first", "wait mean", "p50", "p95", "p99", "waiting",
	"of limit"}

var _ sampler.Sampler = capped{}
