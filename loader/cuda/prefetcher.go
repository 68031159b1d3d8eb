package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// Options configures a Prefetcher. The zero value of every field is usable except Devices
// and Fields.
type Options struct {
	Devices []*Device // batch s of an epoch goes to Devices[s % len(Devices)]; at least one
	// fields of the Loader's batches that go to the device; "tokens.offsets" is Batch.Offsets of a field "tokens"; none
	// only if Direct has some
	Fields []string
	// batches of a device that are being copied or ready, not counting the batch in the loop body; at most as many can
	// be held; 0 means 2
	Prefetch  int
	Normalize map[string]Normalize // fields that the device turns into floats
	Direct    Direct               // further fields, from the dataset's own memory
}

const maxPrefetch = 1 << 10

// validate reports everything that is wrong with o.
func (o Options) validate() error {
	var errs []error
	if len(o.Devices) == 0 || slices.Contains(o.Devices, nil) {
		errs = append(errs, errors.New("no device in Devices, or one that is nil"))
	}
	if o.Prefetch < 0 || o.Prefetch > maxPrefetch {
		errs = append(errs, fmt.Errorf("value %d of Prefetch; it must be from 0 to %d", o.Prefetch, maxPrefetch))
	}
	names := slices.Concat(o.Fields, o.Direct.Fields)
	if len(names) == 0 {
		errs = append(errs, errors.New("no field in Fields, and none in Direct"))
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("field %q is named twice", name))
		}
	}
	for name, n := range o.Normalize {
		if err := n.validate(); err != nil {
			errs = append(errs, fmt.Errorf("Normalize of field %q: %w", name, err))
		}
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("Normalize names the field %q, which is neither in Fields nor in Direct", name))
		}
	}
	if len(o.Direct.Fields) > 0 && o.Direct.Source == nil {
		errs = append(errs, errors.New("no Source in Direct, which names fields"))
	}
	return errors.Join(errs...)
}

// Prefetcher copies the batches of a Loader to devices while the devices compute on earlier
// batches. One epoch is iterated at a time; everything else may be called by any goroutine. mu
// guards the fields below it; it is never held during a call of the driver that waits.
type Prefetcher struct {
	ld    *loader.Loader
	opts  Options
	lanes []*lane
	maps  []*mapping // of Direct
	plan  []*field   // set by the first batch

	mu       sync.Mutex
	run      *run // being iterated; nil between loops
	closed   bool
	live     int          // slots that are not freed
	state    loader.State // after the latest batch that a loop body got
	fault    error        // that could not be returned when it happened
	stats    Stats
	retained bool // Direct.Source
}

// lane is the slots of one device. A device has slots of its own, so that a slow device does not
// take the memory of the others.
type lane struct {
	dev   *Device
	slots []*slot
	free  chan *slot // holds all slots that no batch is in
	held  int        // beyond their loop bodies; under Prefetcher.mu
}

// New returns a Prefetcher of ld, which must stay open, and be iterated by nobody else,
// until Close. It takes streams and events of the devices; memory for Prefetch+1 batches a
// device follows with the first batch. Fields of Direct are page-locked now, which reads
// them from storage.
//
// Batches that the Loader gathers into page-locked memory (loader.Options.Allocator: see
// Device.Allocator) go to the device from there; others are first copied to such memory, and
// counted as staged. The Loader's Options.Prefetch should be at least len(Devices): a
// batch per device is held until its copy is done.
func New(ld *loader.Loader, opts Options) (*Prefetcher, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("cuda: options: %w", err)
	}
	if opts.Prefetch == 0 {
		opts.Prefetch = 2
	}
	p := &Prefetcher{ld: ld, opts: opts, state: ld.State()}
	err := p.openMaps()
	if err == nil {
		err = p.openLanes()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// openMaps page-locks the fields of Direct. A field that cannot be page-locked is no error: it is
// gathered, and Stats says why.
func (p *Prefetcher) openMaps() error {
	src := p.opts.Direct.Source
	if len(p.opts.Direct.Fields) == 0 {
		return nil
	}
	if err := src.Retain(); err != nil {
		return fmt.Errorf("cuda: Direct: %w", err)
	}
	p.retained = true
	for _, name := range p.opts.Direct.Fields {
		i := slices.IndexFunc(src.Specs(), func(s tensor.Spec) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("cuda: options: Direct: the Source has no field %q", name)
		}
		m := &mapping{spec: src.Specs()[i]}
		if m.spec.Ragged {
			return fmt.Errorf("cuda: options: Direct: the records of field %q have variable length; take it "+
				"from the Loader", name)
		}
		m.open(src, p.opts.Devices)
		p.maps = append(p.maps, m)
	}
	return nil
}

// openLanes makes the slots.
func (p *Prefetcher) openLanes() error {
	for _, d := range p.opts.Devices {
		l := &lane{dev: d, free: make(chan *slot, p.opts.Prefetch+1)}
		p.lanes = append(p.lanes, l)
		for range p.opts.Prefetch + 1 {
			s, err := newSlot(p, l)
			if err != nil {
				return err
			}
			p.live++
			l.slots = append(l.slots, s)
			l.free <- s
		}
	}
	return nil
}

// State returns the position of the training: after the latest batch that a loop body received, in
// the form that loader.Resume takes. Batches that were copied and not yet received do not count.
func (p *Prefetcher) State() loader.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// fail keeps an error that no caller can receive now. The next loop or Close returns it.
func (p *Prefetcher) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = errors.Join(p.fault, err)
}

// takeFault returns the errors kept by fail, once.
func (p *Prefetcher) takeFault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.fault
	p.fault = nil
	return err
}

// begin starts a loop, and returns an error if a loop is active.
func (p *Prefetcher) begin(ctx context.Context) (*run, error) {
	if err := p.takeFault(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, fmt.Errorf("cuda: Prefetcher: %w", ErrClosed)
	case p.run != nil:
		return nil, fmt.Errorf("cuda: %w", ErrBusy)
	}
	p.run = newRun(ctx, p)
	return p.run, nil
}

// end forgets a loop that has ended.
func (p *Prefetcher) end() {
	p.mu.Lock()
	p.run = nil
	p.mu.Unlock()
	if err := p.sweep(); err != nil {
		p.fail(err)
	}
}

// Close frees everything, after the devices have finished with it. A loop that is being iterated
// yields ErrClosed next, and frees its slots when it is left. Batches that are still held are an
// error; their memory stays valid until they end. The Loader can be closed afterwards, and then the
// Devices. Close of a closed Prefetcher returns ErrClosed.
func (p *Prefetcher) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return fmt.Errorf("cuda: Prefetcher: %w", ErrClosed)
	}
	p.closed = true
	held := 0
	for _, l := range p.lanes {
		held += l.held
	}
	if p.run != nil {
		p.run.cancel(fmt.Errorf("cuda: Prefetcher: %w", ErrClosed))
	}
	none := p.live == 0
	p.mu.Unlock()
	var err error
	if held > 0 {
		err = fmt.Errorf("cuda: close: %d batches are still held; end them by Done", held)
	}
	if none {
		return errors.Join(err, p.freeMaps())
	}
	return errors.Join(err, p.sweep(), p.takeFault())
}

// sweep frees the free slots of a closed Prefetcher that has no loop, and with the last slot
// everything else. Whoever frees a slot last calls it, so that held batches may end in any order.
func (p *Prefetcher) sweep() error {
	var errs []error
	for s := p.idle(); s != nil; s = p.idle() {
		errs = append(errs, s.close())
		p.mu.Lock()
		p.live--
		last := p.live == 0
		p.mu.Unlock()
		if last {
			errs = append(errs, p.freeMaps())
		}
	}
	return errors.Join(errs...)
}

// idle returns a slot that can be freed now, or nil.
func (p *Prefetcher) idle() *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed || p.run != nil {
		return nil
	}
	for _, l := range p.lanes {
		select {
		case s := <-l.free:
			return s
		default:
		}
	}
	return nil
}

// freeMaps unlocks the fields of Direct and releases their Source.
func (p *Prefetcher) freeMaps() error {
	var errs []error
	for _, m := range p.maps {
		errs = append(errs, m.close())
	}
	if p.retained {
		p.retained = false
		p.opts.Direct.Source.Release()
	}
	return errors.Join(errs...)
}

// took adds the time since a moment to a statistic.
func (p *Prefetcher) took(to *time.Duration, since time.Time) {
	p.mu.Lock()
	*to += time.Since(since)
	p.mu.Unlock()
}
