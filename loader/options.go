package loader

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/penstock/penstock/tensor"
)

// Options configures a Loader. The zero value of every field is usable except BatchSize.
//
// The memory held is at most (Ahead+Workers+1) times the bytes of a batch, and nothing for
// batches that are views. Only BatchSize, Order, Seed, DropLast and Fields change what the
// batches are.
type Options struct {
	BatchSize int      // records per batch; must be > 0
	Workers   int      // goroutines that fill batches; 0 means one fewer than GOMAXPROCS, at least 1
	Ahead     int      // finished batches kept ready, and the most that Keep may hold; 0 means 2
	Order     Order    // which record comes when; nil means Sequential
	Seed      uint64   // the same Seed, epoch and data give the same batches for any Workers
	DropLast  bool     // leave out a last batch that has fewer than BatchSize records
	Fields    []string // the fields that batches have, in this order; none means all of the Source
}

// Limits that keep sizes far from overflow.
const (
	maxBatch   = 1 << 30 // records
	maxWorkers = 1 << 12
	maxAhead   = 1 << 16
	maxRing    = 1 << 44 // bytes of virtual memory
)

// withDefaults returns o with its zero values replaced.
func (o Options) withDefaults() Options {
	if o.Workers == 0 {
		o.Workers = max(1, runtime.GOMAXPROCS(0)-1)
	}
	if o.Ahead == 0 {
		o.Ahead = 2
	}
	if o.Order == nil {
		o.Order = Sequential{}
	}
	return o
}

// slots returns how many batches exist at a time.
func (o Options) slots() int { return o.Ahead + o.Workers + 1 }

// validate reports everything that is wrong with o, and returns the fields to load.
func (o Options) validate(src Source) ([]tensor.Spec, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	inRange := func(name string, v, least, most int) {
		if v < least || v > most {
			fail("%s is %d; it must be from %d to %d", name, v, least, most)
		}
	}
	inRange("BatchSize", o.BatchSize, 1, maxBatch)
	inRange("Workers", o.Workers, 1, maxWorkers)
	inRange("Ahead", o.Ahead, 1, maxAhead)
	specs, err := o.pick(src.Specs())
	errs = append(errs, err)
	if len(errs) == 1 && err == nil { // sizes are known to be sane
		errs = append(errs, o.validateSizes(src, specs))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("loader: options: %w", err)
	}
	return specs, nil
}

// pick returns the fields that o names.
func (o Options) pick(all []tensor.Spec) ([]tensor.Spec, error) {
	var errs []error
	picked := all
	if len(o.Fields) > 0 {
		picked = nil
	}
	for i, name := range o.Fields {
		at := slices.IndexFunc(all, func(s tensor.Spec) bool { return s.Name == name })
		switch {
		case at < 0:
			errs = append(errs, fmt.Errorf("the source has no field %q; it has %s", name, names(all)))
		case slices.Contains(o.Fields[:i], name):
			errs = append(errs, fmt.Errorf("field %q is named twice", name))
		default:
			picked = append(picked, all[at])
		}
	}
	if len(all) == 0 {
		errs = append(errs, errors.New("the source has no fields"))
	}
	for _, s := range picked {
		if err := s.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("source: %w", err))
		}
	}
	return slices.Clone(picked), errors.Join(errs...)
}

// validateSizes needs limits and specs that were found valid.
func (o Options) validateSizes(src Source, specs []tensor.Spec) error {
	ring := 0
	for _, s := range specs {
		if s.RecordBytes() > (maxRing-ring)/o.slots()/o.BatchSize {
			return fmt.Errorf("BatchSize %d: %d batches of %d fields are more than 16 TiB; lower BatchSize, Ahead or Workers",
				o.BatchSize, o.slots(), len(specs))
		}
		ring += o.slots() * o.BatchSize * s.RecordBytes()
	}
	n := o.Order.Epoch(src.Len(), o.Seed, 0).Len()
	if o.DropLast && n > 0 && n < o.BatchSize {
		return fmt.Errorf("DropLast leaves no batch at all: an epoch has %d records and BatchSize is %d", n, o.BatchSize)
	}
	return nil
}

func names(specs []tensor.Spec) string {
	out := make([]string, len(specs))
	for i, s := range specs {
		out[i] = s.Name
	}
	return fmt.Sprintf("%q", out)
}
