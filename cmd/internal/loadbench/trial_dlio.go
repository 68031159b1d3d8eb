package loadbench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// model is one of DLIO's configurations.
type model struct {
	name          string
	bytes, files  int // of a record, and records
	batch         int
	step          time.Duration
	batches, most int // of an accelerator, and the most accelerators that are tried
	goal          float64
	rate          string // that one accelerator asks for
}

var models = []model{
	{"resnet50", 114_660, 3200, 400, 224 * time.Millisecond, 24, 4, .90, "1,786 records/s"},
	{"cosmoflow", 2_828_486, 64, 1, 3500 * time.Microsecond, 800, 4, .70, "808 MB/s"},
	{"unet3d", 146_600_628, 7, 7, 323 * time.Millisecond, 12, 1, .90, "3.2 GB/s"},
}

// accelerators has simulated ones take batches, each of a Loader of its own with one worker:
// what they take for a step is slept.
func accelerators(b *bench) error {
	t := Table{Name: b.trial.Name, Title: b.trial.Title, Notes: append(b.trial.notes(),
		"Workers copy records out of the page cache; the part of the time that accelerators compute is their steps over the time from first to last batch."),
		columns: []column{colUsed, colRate, colBytes, colP50, colP99, colPublished}}
	b.report.Tables = append(b.report.Tables, t)
	sentence := ""
	for _, m := range models {
		ds, err := b.stock(m.name, m.files, b.noise(), store.NewField("x", tensor.Uint8, m.bytes))
		if err != nil {
			return err
		}
		kept := 0
		for n := 1; n <= m.most; n *= 2 {
			r, err := b.accelerate(m, ds, n)
			if err != nil {
				return err
			}
			table := &b.report.Tables[len(b.report.Tables)-1]
			table.Rows = append(table.Rows, r)
			if r.Used >= m.goal {
				kept = n
			}
		}
		sentence += fmt.Sprintf("; %s: %d of %d", m.name, kept, m.most)
	}
	b.report.Doctor = "accelerators that were kept as busy as is asked for" + sentence[1:] + " that were tried"
	return nil
}

// accelerate runs n accelerators at once, and returns what they did together.
func (b *bench) accelerate(m model, src loader.Source, n int) (Result, error) {
	name := m.name + ", " + cli.Counted(int64(n), "accelerator")
	batches := max(2, b.part(m.batches))
	b.progress.Begin(name, int64(n*batches), "batches")
	defer b.progress.End()
	results, errs := make([]Result, n), make([]error, n)
	began := time.Now()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { results[i], errs[i] = b.accelerator(b.ctx, m, src, i, batches) })
	}
	group.Wait()
	all := Result{Name: name, Batch: m.batch, Workers: 1, Total: time.Since(began), Published: &Published{Text: fmt.Sprintf(">= %.0f %%, %s each", 100*m.goal, m.rate)}}
	for i := range results {
		all.join(&results[i], m.step, n)
	}
	all.Wait = waitsOf(all.Waits)
	return all, errors.Join(errs...)
}

// accelerator is one of them. Its first batch, which nothing could prepare for, is not counted as
// waiting.
func (b *bench) accelerator(ctx context.Context, m model, src loader.Source, i, batches int) (Result, error) {
	s := b.epochs(m.name, src, loader.Options{BatchSize: m.batch, Sampler: sampler.Shuffle{}, Workers: 1, Prefetch: 2}, 0)
	s.opts.Seed += uint64(i)
	s.step, s.batches, s.untouched = m.step, batches, true
	return measure(ctx, s, &b.report.Machine, func(batchEvent) { b.progress.Add(1) })
}

// join adds what one of n accelerators did.
func (r *Result) join(o *Result, step time.Duration, n int) {
	if !o.Ran() {
		r.Unavailable = o.Unavailable
		return
	}
	r.Batches, r.Records, r.Bytes, r.Copied = r.Batches+o.Batches, r.Records+o.Records, r.Bytes+o.Bytes, r.Copied+o.Copied
	if len(o.Waits) > 0 {
		r.Waits = append(r.Waits, o.Waits[1:]...)
	}
	r.FirstBatch = max(r.FirstBatch, o.FirstBatch)
	r.Used += step.Seconds() * float64(o.Batches) / max(1e-9, (o.Total-o.FirstBatch).Seconds()) / float64(n)
}
