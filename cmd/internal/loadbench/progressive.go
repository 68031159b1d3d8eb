package loadbench

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/cuda"
	"github.com/penstock/penstock/loader/sampler"
)

// tutorial is the table of PyTorch's tutorial "Data Loading Optimization", in seconds for 160
// batches.
var tutorial = []Published{{Seconds: 32.70, SpeedUp: 1}, {Seconds: 9.90, SpeedUp: 3.30}, {Seconds: 9.82, SpeedUp: 3.33},
	{Seconds: 8.70, SpeedUp: 3.76}, {Seconds: 8.68, SpeedUp: 3.77}, {Seconds: 2.83, SpeedUp: 11.55}}

// progressive returns the tutorial's table: each row has everything that the row before has, and
// one thing more.
func progressive(ctx context.Context, o *Options, s *subject, kind string) (Table, []*setup) {
	o = o.scaled()
	t := Table{Name: "progressive-" + kind, Title: progressiveTitle(o, kind)}
	m := maker{ctx: ctx, work: newWork(kind, o.Delay), out: s.make, seed: o.Seed}
	p := progress{o: o, s: s, m: m}
	rows := []*setup{p.baseline(), p.workers(), p.pinned(), p.persistent(), p.onDevice(), p.batched()}
	rows = append(rows, p.precomputed()...)
	if o.tutorial() && kind == workSleep {
		for i := range tutorial {
			rows[i].published = &tutorial[i]
		}
	}
	t.Notes = p.notes(kind)
	return t, rows
}

// progressiveTitle returns the title of the table.
func progressiveTitle(o *Options, kind string) string {
	switch {
	case o.Delay == 0 && o.Synthetic:
		return "row by row, records drawn at random when they are asked for"
	case o.Delay == 0:
		return "row by row, records as they are stored"
	}
	text := "row by row, " + kindText(kind, o.Delay) + " a record"
	if kind == workCPU {
		text += " (the CPU-bound twin)"
	}
	return text
}

// progress makes the rows of tables.
type progress struct {
	o   *Options
	s   *subject
	m   maker
	ram loader.Allocator // page-locked memory, from the row that introduces it on; nil if there is none
}

// row returns a setup that prepares one record at a time.
func (p *progress) row(name, note string, workers int) *setup {
	o := p.o.loader(workers)
	if p.s.workField != "" {
		o.Transforms = map[string]loader.Transform{p.s.workField: p.m}
	}
	return &setup{name: name, note: note, src: p.s.raw, opts: o, batches: p.o.Batches, minTime: p.o.MinTime,
		floor: floor{delay: p.m.work.delay, sleeps: p.m.work.kind != workCPU, makes: p.m.generates()}}
}

// baseline is the first row: no workers.
func (p *progress) baseline() *setup {
	return p.row("baseline", "one record at a time, in the consumer", loader.Synchronous)
}

// workers adds workers and prefetching.
func (p *progress) workers() *setup {
	return p.row("+ workers, prefetch", fmt.Sprintf("%d workers, %d batches prefetched; rebuilt for each epoch",
		p.o.Workers, p.o.queueDepth()), p.o.Workers)
}

// pinned adds page-locked memory, if there is as much as the ring of batches needs.
func (p *progress) pinned() *setup {
	s := p.row("+ page-locked", "buffers that are never paged out", p.o.Workers)
	ram, why := newPinned((p.o.queueDepth() + p.o.Workers + 1) * p.o.Batch * max(1, p.s.info.RecordBytes))
	if s.unavailable = why; ram != nil {
		p.ram, s.opts.Allocator = ram, ram
		p.s.closers = append(p.s.closers, ram.release)
	}
	return s
}

// persistent keeps one Loader for all epochs.
func (p *progress) persistent() *setup {
	s := p.row("+ persistent", "one Loader for all epochs, which fills the next epoch's first batches early", p.o.Workers)
	s.persistent, s.opts.Allocator, s.diagnosed = true, p.ram, true
	return s
}

// The rows of batches on a device.
const (
	deviceRow       = "+ device prefetch"
	storedDeviceRow = "precomputed, on the device"
)

// onDevice adds copies to a CUDA device in advance.
func (p *progress) onDevice() *setup {
	s := p.row(deviceRow, "batches are copied to the device in advance; nobody reads them there", p.o.Workers)
	s.device, s.opts.Allocator = true, p.ram
	if _, err := cuda.Count(); err != nil {
		s.unavailable = err.Error()
	}
	return s
}

// batched prepares a whole batch by one call, as the tutorial's __getitems__ does.
func (p *progress) batched() *setup {
	s := p.row("+ batched fetch", "one call prepares a batch, with the work of one record", p.o.Workers)
	s.persistent, s.opts.Allocator, s.opts.Transforms = true, p.ram, nil
	b := batchMaker{maker: p.m, field: imagesField, once: p.m.work.kind != workCPU}
	if !b.once {
		s.note = "one call prepares a batch, with the work of all its records"
	}
	if p.m.work.delay > 0 || p.m.generates() {
		s.opts.Collate = b.collate()
	} else {
		s.note = "one call copies a batch"
	}
	s.floor.once = b.once
	return s
}

// precomputed returns the rows that read records which were prepared once and stored. The tutorial
// has no such rows.
func (p *progress) precomputed() []*setup {
	gathered := &setup{name: "precomputed, shuffled",
		note: "prepared once and stored; batches are gathered from the mapping", opts: p.o.loader(p.o.Workers)}
	views := &setup{name: "precomputed, zero-copy",
		note: "prepared once and stored; batches are views of the mapping, shuffled as runs of a batch",
		opts: p.o.loader(p.o.Workers)}
	views.opts.Sampler, views.opts.Budget = sampler.Block{Size: p.o.Batch}, 0
	views.floor.views = true
	rows := []*setup{gathered, views}
	if p.m.work.delay == 0 && !p.m.generates() { // the batched row is the same as the first
		views.name, views.note = "+ zero-copy", "batches are views of the mapping, shuffled as runs of a batch"
		rows = rows[1:]
	}
	if order := p.s.byChunks(p.o.Batch); order != nil {
		chunks := &setup{name: chunkShuffle, note: order.Plan().String(), opts: p.o.loader(p.o.Workers)}
		chunks.opts.Sampler = order
		rows = append(rows, chunks)
	}
	if _, err := cuda.Count(); err == nil { // where there is none, the line of deviceRow says so
		rows = append(rows,
			&setup{name: storedDeviceRow,
				note: "prepared once and stored; gathered into page-locked memory, and copied to the device in advance",
				opts: p.o.loader(p.o.Workers), device: true})
		rows[len(rows)-1].opts.Allocator = p.ram
	}
	for _, s := range rows {
		s.persistent, s.batches, s.minTime, s.unavailable = true, p.o.Batches, p.o.MinTime, p.s.why
		if p.s.stored != nil {
			s.src = p.s.stored
		}
	}
	return rows
}

// notes explains what the rows of the table leave out.
func (p *progress) notes(kind string) []string {
	var notes []string
	if p.s.workField == "" {
		notes = append(notes, "Records of variable length are not read singly: the baseline takes one batch at a time.")
	}
	if p.m.work.delay > 0 || p.m.generates() {
		once := "The precomputed rows leave the preparation out: it was done before"
		if p.s.once > 0 {
			once += fmt.Sprintf(" (making and storing %d records took %.1f s, without that work)", p.s.info.Records,
				p.s.once.Seconds())
		}
		notes = append(notes,
			once+". They say what a loop gains whose preparation can be stored, not that loading got faster.")
	}
	if p.m.generates() && kind != workCPU {
		notes = append(notes, "The batched row sleeps once a batch, as the tutorial's __getitems__ does.")
	}
	return notes
}

// loader returns the options that the rows share.
func (o *Options) loader(workers int) loader.Options {
	return loader.Options{BatchSize: o.Batch, Sampler: sampler.Shuffle{}, Seed: o.Seed, Workers: workers,
		Prefetch: o.queueDepth(), Budget: o.Budget}
}

// queueDepth returns the number of batches that all workers prefetch together. PyTorch's
// prefetch_factor counts the batches of one worker.
func (o *Options) queueDepth() int { return max(1, o.Workers*o.Prefetch) }

// tutorial reports whether the run has the tutorial's own parameters, so that its numbers can be
// shown beside.
func (o *Options) tutorial() bool {
	d := Defaults()
	return o.Synthetic && o.Size == d.Size && slices.Equal(o.Shape, d.Shape) && o.Delay == d.Delay && o.Batch == d.Batch &&
		o.Workers == d.Workers && o.Prefetch == d.Prefetch
}
