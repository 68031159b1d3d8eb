package feed

import (
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Options is what a client asks for. Of the zero value only BatchSize has to be set.
type Options struct {
	BatchSize int           `json:"batch_size"`
	Fields    []string      `json:"fields,omitempty"` // null means all
	Split     string        `json:"split,omitempty"`
	Shuffle   bool          `json:"shuffle,omitempty"`
	Seed      uint64        `json:"seed,omitempty"`
	Epochs    int           `json:"epochs,omitempty"` // the first that is not served; 0 means no end
	DropLast  bool          `json:"drop_last,omitempty"`
	Rank      int           `json:"rank,omitempty"`
	World     int           `json:"world,omitempty"`     // processes that train together; 0 means 1
	Normalize bool          `json:"normalize,omitempty"` // images that the dataset has a normalisation for, not applied yet, become float32
	Flip      bool          `json:"flip,omitempty"`      // half of the images are mirrored
	Ahead     int           `json:"ahead,omitempty"`     // batches that the client may have at a time; 0 means 4
	Workers   int           `json:"workers,omitempty"`   // goroutines that fill batches; 0 means one fewer than there are cores
	State     *loader.State `json:"state,omitempty"`     // where to go on; nil means at the start
}

// Limits of Options.Prefetch. With one batch, the feeder could not fill the next while it is used.
const (
	minAhead     = 2
	defaultAhead = 4
	maxAhead     = 256
)

// Limits of other options, which are those of package loader.
const (
	maxBatch   = 1 << 30
	maxWorld   = 1 << 20
	maxWorkers = 1 << 12
)

// ahead returns Ahead, or its default.
func (o Options) ahead() int {
	if o.Ahead == 0 {
		return defaultAhead
	}
	return o.Ahead
}

// end returns the number of the first epoch that is not served.
func (o Options) end() int {
	if o.Epochs == 0 {
		return math.MaxInt
	}
	return o.Epochs
}

// world returns World, or its default.
func (o Options) world() int {
	if o.World == 0 {
		return 1
	}
	return o.World
}

// validate reports everything that is wrong with o by itself, by the names that clients use.
func (o Options) validate() error {
	var errs []error
	inRange := func(name string, v, least, most int) {
		if v < least || v > most {
			errs = append(errs, fmt.Errorf("%s is %d; it must be from %d to %d", name, v, least, most))
		}
	}
	inRange("batch_size", o.BatchSize, 1, maxBatch)
	inRange("world", o.world(), 1, maxWorld)
	inRange("rank", o.Rank, 0, max(1, o.world())-1)
	inRange("ahead", o.ahead(), minAhead, maxAhead)
	inRange("epochs", o.Epochs, 0, math.MaxInt)
	inRange("workers", o.Workers, 0, maxWorkers)
	return errors.Join(errs...)
}

// validateFor reports options that do not suit a dataset of n records.
func (o Options) validateFor(n int) error {
	if global := o.BatchSize * o.world(); o.DropLast && n < global {
		return fmt.Errorf("drop_last leaves no batch: there are %d records, and a batch of all ranks has %d", n, global)
	}
	return nil
}

// loader returns the options of the Loader that a client gets.
func (o Options) loader(ds subject) (loader.Options, error) {
	out := loader.Options{
		BatchSize: o.BatchSize, Seed: o.Seed, DropLast: o.DropLast, World: loader.World{Rank: o.Rank, Size: o.World},
		Prefetch: o.ahead(), Workers: o.Workers,
	}
	if o.Shuffle {
		out.Sampler = sampler.Shuffle{}
	}
	var err error
	out.Transforms, err = o.transforms(ds.Schema().Fields)
	return out, err
}

// transforms returns what becomes of the fields.
func (o Options) transforms(fields []store.Field) (map[string]loader.Transform, error) {
	out := make(map[string]loader.Transform)
	flipped := false
	for _, f := range fields {
		normalize := o.Normalize && f.Normalization != nil && !f.Normalization.Applied
		flip := o.Flip && isImage(f)
		if !normalize && !flip {
			continue
		}
		flipped = flipped || flip
		t, err := images(f, normalize, flip)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		out[f.Name] = t
	}
	if o.Flip && !flipped {
		return nil, errors.New("flip: no field has images stored as uint8 with a layout; leave flip out")
	}
	return out, nil
}

// isImage reports whether records of a field can be mirrored.
func isImage(f store.Field) bool {
	return f.Layout != "" && f.DType == tensor.Uint8 && len(f.Shape) == 3 && !f.Ragged
}

// images returns the Transform of an image field, which keeps its layout.
func images(f store.Field, normalize, flip bool) (loader.Transform, error) {
	layout := transforms.CHW
	if f.Layout == store.HWC {
		layout = transforms.HWC
	}
	var ops []transforms.Transform
	if flip {
		ops = append(ops, transforms.RandomHorizontalFlip{})
	}
	ops = append(ops, transforms.ToLayout{Layout: layout})
	if normalize {
		n := f.Normalization
		if n.Scale != 255 || !isImage(f) {
			return nil, fmt.Errorf("its normalisation is of %v%v with scale %v; only that of uint8 images with scale 255 can be applied", f.DType, f.Shape, n.Scale)
		}
		ops = append(ops, transforms.ConvertDType{DType: tensor.Float32}, transforms.Normalize{Mean: n.Mean, Std: n.Std})
	}
	p, err := transforms.Compose(ops...)
	return loader.Images{Pipeline: p, Layout: layout}, err
}

// served returns the fields as batches have them.
func served(fields []store.Field, ts map[string]loader.Transform) ([]store.Field, bool, error) {
	out, ragged := make([]store.Field, len(fields)), false
	for i, f := range fields {
		if t := ts[f.Name]; t != nil {
			spec, err := t.Output(f.Spec)
			if err != nil {
				return nil, false, fmt.Errorf("field %q: %w", f.Name, err)
			}
			if spec.DType != f.DType {
				done := *f.Normalization
				done.Applied = true
				f.Normalization = &done
			}
			f.Spec = spec
			f.Storage = spec.DType.Descr()
		}
		out[i], ragged = f, ragged || f.Ragged
	}
	return out, ragged, nil
}
