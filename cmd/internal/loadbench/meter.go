package loadbench

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/cuda"
	"github.com/penstock/penstock/loader/sampler"
)

// errEnough ends a run that has enough batches.
var errEnough = errors.New("enough batches")

// batchEvent describes one batch as it was used.
type batchEvent struct {
	Epoch, Batch, Records int
	At                    time.Duration // since the setup began
	Wait, Body            time.Duration
}

// meter measures one setup. It serves one goroutine.
type meter struct {
	s      *setup
	r      *Result
	report func(batchEvent)
	began  time.Time
	asked  time.Time // when the consumer asked for the batch it waits for
	from   time.Time // start of the current epoch, the making of its Loader included
	fields []string
}

// measure runs a setup. If its Loader or first batch cannot be made, the Result says why: this row
// is not available, and the others still run.
func measure(ctx context.Context, s *setup, machine *Machine, report func(batchEvent)) (Result, error) {
	r := Result{Name: s.name, Note: s.note, Unavailable: s.unavailable, Published: s.published,
		Batch: s.opts.BatchSize, Workers: max(0, s.opts.Workers), Prefetch: s.opts.Prefetch,
		Sampler: samplerName(s.opts.Sampler), asked: s.batches}
	if !r.Ran() {
		return r, nil
	}
	cpu := usage.Process()
	m := &meter{s: s, r: &r, report: report, began: time.Now()}
	err := m.run(ctx)
	r.Total = time.Since(m.began)
	var wrong *setupError
	if errors.As(err, &wrong) || err != nil && r.Batches == 0 && ctx.Err() == nil {
		r.Unavailable = err.Error()
		return r, nil
	}
	if err != nil && !errors.Is(err, errEnough) {
		return r, err
	}
	if s.opts.Allocator != nil && r.Pinned == 0 {
		r.Note += "; but the system did not lock the pages"
	}
	r.CPU = usage.Process() - cpu
	r.Wait = waitsOf(r.Waits)
	r.Limit = s.least(&r, machine).Seconds() / max(1e-9, r.Total.Seconds())
	return r, nil
}

// setupError says that a setup does not suit the dataset or the machine.
type setupError struct{ error }

// run iterates the epochs, by one Loader for all or by one for each.
func (m *meter) run(ctx context.Context) error {
	if m.s.persistent {
		return m.withLoader(ctx, func(ld *loader.Loader) error {
			for number, batches := range ld.Epochs(ctx, m.end()) {
				if err := m.epoch(number, batches); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for number := range m.end() {
		err := m.withLoader(ctx, func(ld *loader.Loader) error {
			return m.epoch(number, ld.Epoch(ctx, number))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// end returns the number of epochs, without limit if batches end the run.
func (m *meter) end() int {
	if m.s.epochs > 0 {
		return m.s.epochs
	}
	return math.MaxInt // until there are enough batches
}

// withLoader makes a Loader, uses and closes it. The measurement includes the making.
func (m *meter) withLoader(ctx context.Context, use func(*loader.Loader) error) error {
	m.from = time.Now()
	m.asked = m.from
	if chunked, ok := m.s.src.(loader.ChunkSource); ok {
		order, _ := m.s.opts.Sampler.(*sampler.ChunkShuffle)
		chunked.KeepChunks(order)
	}
	ld, err := loader.New(m.s.src, m.s.opts)
	if err != nil {
		return &setupError{err}
	}
	if m.s.device {
		err = m.onDevice(ctx, ld)
	} else {
		err = use(ld)
	}
	m.r.takeStats(ld.Stats())
	return errors.Join(err, ld.Close())
}

// epoch uses the batches of one epoch in host memory. It reads every cache line, as training would:
// views of a mapping would otherwise cost nothing at all.
func (m *meter) epoch(number int, batches func(func(loader.Batch, error) bool)) error {
	defer m.endEpoch()
	for b, err := range batches {
		if err != nil {
			return err
		}
		got := time.Now()
		n := 0
		for _, name := range m.names() {
			bytes := b.Field(name).Bytes()
			sink.Add(touch(bytes))
			n += len(bytes)
		}
		if err := m.used(number, b.Step(), b.Len(), n, got); err != nil {
			return err
		}
	}
	return nil
}

// endEpoch notes the time of an epoch.
func (m *meter) endEpoch() {
	now := time.Now()
	m.r.Epochs = append(m.r.Epochs, now.Sub(m.from))
	m.from = now
}

// onDevice uses the batches of all epochs on a CUDA device.
func (m *meter) onDevice(ctx context.Context, ld *loader.Loader) error {
	dev, err := cuda.Open(0)
	if err != nil {
		return &setupError{err}
	}
	defer dev.Close()
	pf, err := cuda.New(ld, cuda.Options{Devices: []*cuda.Device{dev}, Fields: m.names()})
	if err != nil {
		return &setupError{err}
	}
	for number := 0; err == nil && number < m.end(); number++ {
		err = m.deviceEpoch(ctx, pf, number)
	}
	return errors.Join(err, pf.Close())
}

// deviceEpoch uses the batches of one epoch on the device. A batch counts when its copy is
// complete.
func (m *meter) deviceEpoch(ctx context.Context, pf *cuda.Prefetcher, number int) error {
	defer m.endEpoch()
	for b, err := range pf.Epoch(ctx, number) {
		if err != nil {
			return err
		}
		if err := b.Synchronize(); err != nil {
			return err
		}
		got, n := time.Now(), 0
		for _, name := range m.names() {
			n += b.Field(name).Bytes()
		}
		step, records := b.Step(), b.Len()
		if err := errors.Join(b.Done(b.Stream()), m.used(number, step, records, n, got)); err != nil {
			return err
		}
	}
	return nil
}

// names returns the fields of batches, including the fields that Collate adds.
func (m *meter) names() []string {
	if m.fields != nil {
		return m.fields
	}
	m.fields = slices.Clone(m.s.opts.Fields)
	if len(m.fields) == 0 {
		for _, spec := range m.s.src.Specs() {
			m.fields = append(m.fields, spec.Name)
		}
	}
	for _, spec := range m.s.opts.Collate.Adds {
		m.fields = append(m.fields, spec.Name)
	}
	return m.fields
}

// used counts a batch that arrived at got, sleeps for a training step, and asks for the next batch.
func (m *meter) used(epoch, batch, records, bytes int, got time.Time) error {
	r := m.r
	wait := got.Sub(m.asked)
	if r.Batches == 0 {
		r.FirstBatch = got.Sub(m.began)
	}
	if m.s.step > 0 {
		time.Sleep(m.s.step)
	}
	r.Batches++
	r.Records += records
	r.Bytes += int64(bytes)
	r.Waits = append(r.Waits, wait)
	m.asked = time.Now()
	if m.report != nil {
		m.report(batchEvent{epoch, batch, records, got.Sub(m.began), wait, m.asked.Sub(got)})
	}
	if m.s.batches > 0 && r.Batches >= m.s.batches && m.asked.Sub(m.began) >= m.s.minTime {
		return errEnough
	}
	return nil
}
