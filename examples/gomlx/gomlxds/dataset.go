package gomlxds

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/penstock/penstock/loader"
)

// Config selects what GoMLX receives from a loader's batches. The zero value of every field but
// Backend and Inputs is usable.
type Config struct {
	Backend compute.Backend
	Device  compute.DeviceNum
	Inputs  []string // the fields that a model gets, in this order
	Labels  []string // the fields that losses and metrics get, in this order
	// fields of variable length, padded by loader.Pad: one more input for each, int32 of shape (BatchSize), how many rows
	// are not padding
	Lengths []string
	Mask    bool   // one more label, bool of shape (BatchSize): whether a record counts
	Endless bool   // Iter begins the next epoch after the last batch, for RunSteps
	Title   string // what Name returns; empty means "penstock"
}

// Dataset is a train.Dataset. One Iter may be under way at a time; everything else may be
// called by any goroutine.
type Dataset struct {
	ld       *loader.Loader
	config   Config
	fields   []field
	batch    int
	workers  int // goroutines that fill
	prefetch int // batches in addition

	mu    sync.Mutex
	busy  bool
	at    position
	stats Stats
}

var _ train.Dataset = (*Dataset)(nil)

// position is the batch that comes next.
type position struct{ epoch, step int }

// Stats reports the work of a Dataset.
type Stats struct {
	Batches int           // handed out
	Wait    time.Duration // that the consumer waited for them
	Fill    time.Duration // that goroutines needed to make them, also those that were not handed out
}

// New returns a Dataset of the batches that loader.New(src, o) would load. Options.Fields
// must be empty, as Config names the fields; Options.Prefetch+Options.Workers+1 batches exist
// at a time. The error names everything that is wrong. src must stay open until Close.
func New(src loader.Source, o loader.Options, c Config) (*Dataset, error) {
	return build(src, o, c, func(o loader.Options) (*loader.Loader, error) { return loader.New(src, o) })
}

// Resume is New, continuing at a State. It refuses the State of another run: see loader.Resume.
func Resume(src loader.Source, o loader.Options, c Config, st loader.State) (*Dataset, error) {
	return build(src, o, c, func(o loader.Options) (*loader.Loader, error) { return loader.Resume(src, o, st) })
}

func build(src loader.Source, o loader.Options, c Config, open func(loader.Options) (*loader.Loader, error)) (
	*Dataset, error) {
	if err := c.validate(o); err != nil {
		return nil, fmt.Errorf("gomlxds: %w", err)
	}
	o.Fields = c.stored(o)
	ld, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("gomlxds: %w", err)
	}
	d := &Dataset{ld: ld, config: c, batch: o.BatchSize, workers: workers(o), prefetch: o.Prefetch}
	if d.prefetch == 0 {
		d.prefetch = 2
	}
	st := ld.State()
	d.at = position{st.Epoch, st.Step}
	if d.fields, err = c.fields(src, o); err == nil {
		err = c.validateLast(src, o)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gomlxds: %w", err), ld.Close())
	}
	return d, nil
}

// Name returns Config.Title.
func (d *Dataset) Name() string {
	if d.config.Title == "" {
		return "penstock"
	}
	return d.config.Title
}

// Iter returns the batches from the position of the Dataset on: see the package comment. The
// tensors are the consumer's.
func (d *Dataset) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		from, err := d.begin()
		if err != nil {
			yield(train.Batch{}, err)
			return
		}
		defer d.end()
		p := d.start(from)
		defer p.stop()
		for {
			before := time.Now()
			r, ok := p.next()
			if !ok {
				return
			}
			if r.err != nil {
				yield(train.Batch{}, r.err)
				return
			}
			d.delivered(r.at, time.Since(before))
			if !yield(r.batch, nil) {
				return
			}
		}
	}
}

// State returns the position: the first batch that was not handed out. A position taken after a
// step is the position where the next step continues.
func (d *Dataset) State() loader.State {
	st := d.ld.State()
	d.mu.Lock()
	defer d.mu.Unlock()
	st.Epoch, st.Step, st.Done = d.at.epoch, d.at.step, ""
	return st
}

// Batches returns the number of batches of an epoch.
func (d *Dataset) Batches(epoch int) int { return d.ld.Batches(epoch) }

// Stats returns the counts so far.
func (d *Dataset) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Close ends the Dataset. No Iter may be under way.
func (d *Dataset) Close() error { return d.ld.Close() }

func (d *Dataset) begin() (position, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy {
		return position{}, errors.New("gomlxds: another Iter of this Dataset is under way: leave that one first, or make a " +
			"second Dataset")
	}
	d.busy = true
	return d.at, nil
}

func (d *Dataset) end() {
	d.mu.Lock()
	d.busy = false
	d.mu.Unlock()
}

// delivered moves the position past a batch.
func (d *Dataset) delivered(at position, wait time.Duration) {
	next := position{at.epoch, at.step + 1}
	if next.step == d.ld.Batches(at.epoch) {
		next = position{epoch: at.epoch + 1}
	}
	d.mu.Lock()
	d.at = next
	d.stats.Batches++
	d.stats.Wait += wait
	d.mu.Unlock()
}

func (d *Dataset) filled(spent time.Duration) {
	d.mu.Lock()
	d.stats.Fill += spent
	d.mu.Unlock()
}
