package loadbench

import (
	"context"
	"errors"
	"fmt"
)

// Progress receives the progress of a run; cli.Progress implements it.
type Progress interface {
	Begin(what string, total int64, unit string)
	Add(n int64)
	End()
}

// Run takes the measurements that o asks for. If it ends early, it returns the finished rows and
// the error; the Report is nil if nothing was measured.
func Run(ctx context.Context, o Options, progress Progress) (report *Report, err error) {
	b := &bench{ctx: ctx, o: &o, progress: progress, report: &Report{Machine: newMachine()}}
	b.report.Scaled = o.shorten()
	if o.Budget == 0 {
		o.Budget = freeMemory() / 2
	}
	if b.log, err = createLog(o.Log); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.log.close()) }()
	if err := b.open(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.s.close()) }()
	err = b.tables()
	b.report.Interrupted = err != nil && ctx.Err() != nil
	if b.report.Bottleneck == "" {
		b.report.Bottleneck = bottleneck(b.report.Tables)
	}
	if !o.Synthetic && o.Delay == 0 && o.TrainStep == Defaults().TrainStep {
		var failed error
		if b.report.Order, failed = labelOrder(ctx, b.s.raw, o.Batch); failed == nil {
			b.report.Setting = b.report.setting()
		}
		if err == nil {
			err = failed
		}
	}
	if err == nil {
		err = b.report.check()
	}
	return b.report, err
}

// bench is one run.
type bench struct {
	ctx      context.Context
	o        *Options
	progress Progress
	report   *Report
	s        *subject
	log      *batchLog
	remote   string // how the dataset was fetched, if it was
}

// open prepares the data, measures what depends on it, and reads it into memory.
func (b *bench) open() (err error) {
	if b.o.Synthetic {
		b.progress.Begin("preparing", int64(b.o.Size), "records")
		b.s, err = synthesize(b.ctx, b.o, func(n int) { b.progress.Add(int64(n)) })
		b.progress.End()
	} else if b.isRemote() {
		b.s, err = b.openRemote()
	} else {
		b.s, err = openSubject(b.o)
	}
	if err == nil && b.s.workField == "" && b.o.Delay > 0 {
		err = errors.New("--delay needs a field whose records have one length; name one by --fields")
	}
	if err != nil {
		if b.s != nil {
			err = errors.Join(err, b.s.close())
		}
		return err
	}
	if b.s.workField == "" {
		b.o.Budget = 0 // a budget is for buffers of one size
	}
	b.o.Batch = min(b.o.Batch, b.s.info.Records)
	b.report.Dataset = b.s.info
	if field := b.s.storedField(); b.s.stored != nil && field != "" {
		b.report.Machine.lookAt(b.s, field)
	}
	if !b.o.Synthetic {
		b.progress.Begin("warming", int64(b.s.info.Records*len(b.s.info.Fields)), "records")
		b.report.Cache = warm(b.ctx, b.s, func(n int) { b.progress.Add(int64(n)) })
		b.progress.End()
	}
	return nil
}

// tables measures the tables that were asked for.
func (b *bench) tables() error {
	names := b.o.Tables
	if len(names) == 0 {
		names = []string{tableRows}
	}
	for _, name := range names {
		if err := b.named(name); err != nil {
			return err
		}
	}
	return nil
}

// named measures the tables with one name: a table for each kind of work, or one sweep.
func (b *bench) named(name string) error {
	var make func(context.Context, *Options, *subject, string) (Table, []*setup)
	switch name {
	case tableRows:
		make = progressive
	case tableGuide:
		make = guide
	default:
		t, rows := sweep(b.ctx, b.o, b.s, name)
		return b.table(t, rows)
	}
	for _, kind := range b.o.kinds() {
		t, rows := make(b.ctx, b.o, b.s, kind)
		if err := b.table(t, rows); err != nil {
			return err
		}
	}
	return nil
}

// table measures the rows of a table. Each row is added as soon as it is measured, so that an
// interrupted run keeps it.
func (b *bench) table(t Table, rows []*setup) error {
	at := len(b.report.Tables)
	b.report.Tables = append(b.report.Tables, t)
	for _, s := range rows {
		r, err := b.row(t.Name, s)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", t.Name, s.name, err)
		}
		table := &b.report.Tables[at]
		table.Rows = append(table.Rows, r)
		table.compare()
		if s.diagnosed && r.Ran() && b.report.Bottleneck == "" {
			b.report.Bottleneck = r.Name + ": " + r.Diagnosis
		}
	}
	return nil
}

// row measures one setup and shows its progress.
func (b *bench) row(table string, s *setup) (Result, error) {
	if s.unavailable == "" {
		total := s.batches
		if total == 0 || s.minTime > 0 { // a row of short batches measures more
			total = -1
		}
		b.progress.Begin(s.name, int64(total), "batches")
		defer b.progress.End()
	}
	return measure(b.ctx, s, &b.report.Machine, func(e batchEvent) {
		b.progress.Add(1)
		b.log.add(table, s.name, e)
	})
}

// bottleneck returns the diagnosis of the best row of the first table that has a diagnosis. Rows
// with eight batches or more come first, since the diagnosis of fewer batches is vague.
func bottleneck(tables []Table) string {
	for _, least := range []int{8, 1} {
		for i := range tables {
			if best := tables[i].best(least); best != nil {
				return best.Name + ": " + best.Diagnosis
			}
		}
	}
	return ""
}

// check returns an error if no row could be measured at all.
func (r *Report) check() error {
	why := "nothing was measured"
	for i := range r.Tables {
		for j := range r.Tables[i].Rows {
			row := &r.Tables[i].Rows[j]
			if row.Ran() {
				return nil
			}
			why = row.Unavailable
		}
	}
	return errors.New(why)
}
