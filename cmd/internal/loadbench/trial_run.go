package loadbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/penstock/penstock/internal/sys/cputime"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// openTrial prepares a folder for what the trial is measured on.
func (b *bench) openTrial() error {
	t, problem := findTrial(b.o.Trial)
	if problem != "" {
		return errors.New(problem)
	}
	folder, err := os.MkdirTemp("", "loadbench-")
	if err != nil {
		return err
	}
	b.trial, b.s = t, &subject{folder: folder}
	b.report.Dataset = Dataset{Name: t.Name + ": " + t.Title}
	return nil
}

// part returns a number, or an eighth of it where the run is to be quick.
func (b *bench) part(n int) int {
	if b.o.Quick {
		return max(1, n/8)
	}
	return n
}

// stock writes a dataset of n records, each made by fill, and opens it. It ends with the run.
func (b *bench) stock(name string, n int, fill func(i int, r *store.Record), fields ...store.Field) (*mmapds.Dataset, error) {
	b.progress.Begin("preparing "+name, int64(n), "records")
	defer b.progress.End()
	path := filepath.Join(b.s.folder, name)
	schema := store.Schema{Fields: fields}
	w, err := store.CreateFlat(path, schema, store.FlatOptions{})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range n {
		if err := b.ctx.Err(); err != nil {
			return nil, err
		}
		fill(i, r)
		if err := w.Append(r); err != nil {
			return nil, err
		}
		b.progress.Add(1)
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		return nil, err
	}
	ds, err := mmapds.Open(path)
	if err == nil {
		b.s.closers = append(b.s.closers, ds.Close)
	}
	return ds, err
}

// noise returns a fill of the first field with random bytes.
func (b *bench) noise() func(int, *store.Record) {
	var seed [32]byte
	seed[0] = byte(b.o.Seed)
	src := rand.NewChaCha8(seed)
	return func(_ int, r *store.Record) { _, _ = src.Read(r.Values[0]) } // it never fails
}

// epochs returns a row of whole epochs by one Loader.
func (b *bench) epochs(name string, src loader.Source, opts loader.Options, epochs int) *setup {
	opts.Seed, opts.Budget = b.o.Seed, b.o.Budget
	return &setup{name: name, src: src, opts: opts, persistent: true, epochs: epochs}
}

// op is a row that is not a Loader's: something done over and over.
type op struct {
	name      string
	published *Published
	times     int // that it is done
	do        func(i int) (records, bytes int, err error)
}

// ops measures rows that are not a Loader's.
func (b *bench) ops(t Table, rows []op) error {
	at := len(b.report.Tables)
	b.report.Tables = append(b.report.Tables, t)
	for _, o := range rows {
		b.progress.Begin(o.name, int64(o.times), "times")
		r, err := o.measure(b.ctx, b.progress)
		b.progress.End()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", t.Name, o.name, err)
		}
		table := &b.report.Tables[at]
		table.Rows = append(table.Rows, r)
		table.compare()
	}
	return nil
}

// measure does o once to warm up, and then as often as it is to be done. A time is a wait of
// the Result.
func (o *op) measure(ctx context.Context, p Progress) (Result, error) {
	r := Result{Name: o.name, Published: o.published}
	if _, _, err := o.do(0); err != nil {
		return r, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, began := cputime.Process(), time.Now()
	for i := range o.times {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		from := time.Now()
		records, bytes, err := o.do(i)
		if err != nil {
			return r, err
		}
		r.Waits = append(r.Waits, time.Since(from))
		r.Batches, r.Records, r.Bytes = r.Batches+1, r.Records+records, r.Bytes+int64(bytes)
		p.Add(1)
	}
	r.Total, r.CPU = time.Since(began), cputime.Process()-cpu
	runtime.ReadMemStats(&after)
	r.Allocated = int64(after.TotalAlloc - before.TotalAlloc)
	r.Wait, r.FirstBatch = waitsOf(r.Waits), r.Waits[0]
	return r, nil
}

// last returns the row of the trial that was measured last.
func (b *bench) last() *Result {
	rows := b.report.Tables[len(b.report.Tables)-1].Rows
	return &rows[len(rows)-1]
}
