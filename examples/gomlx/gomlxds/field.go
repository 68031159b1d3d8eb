package gomlxds

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// field is one tensor of a batch.
type field struct {
	spec  tensor.Spec
	shape shapes.Shape
	size  int // bytes of a record
}

// validate reports the errors of c that do not depend on the source.
func (c Config) validate(o loader.Options) error {
	var errs []error
	fail := func(bad bool, text string) {
		if bad {
			errs = append(errs, errors.New(text))
		}
	}
	fail(c.Backend == nil, "Config.Backend is nil")
	fail(len(c.Inputs) == 0, "Config.Inputs names no field")
	fail(len(o.Fields) > 0, "Options.Fields is not empty: Config.Inputs and Config.Labels name the fields")
	fail(o.Unordered || o.Allocator != nil,
		"Options.Unordered and Options.Allocator have no meaning here: batches come in order, in tensors")
	for _, spec := range o.Collate.Adds {
		fail(!slices.Contains(c.names(), spec.Name),
			fmt.Sprintf("Collate adds the field %q, which is neither in Config.Inputs nor in Config.Labels", spec.Name))
	}
	for _, name := range c.Lengths {
		_, padded := o.Transforms[name].(loader.Pad)
		fail(!padded || !slices.Contains(c.names(), name),
			fmt.Sprintf("Config.Lengths names %q, which is not a field that loader.Pad makes", name))
	}
	return errors.Join(errs...)
}

// validateLast reports a last batch that is not full, and that nobody could detect.
func (c Config) validateLast(src loader.Source, o loader.Options) error {
	n, global := src.Len(), o.BatchSize*max(1, o.World.Size)
	if o.Sampler != nil {
		n = o.Sampler.Epoch(n, o.Seed, 0).Len()
	}
	if o.DropLast || c.Mask || n%global == 0 {
		return nil
	}
	return fmt.Errorf("the last of %d records make no full batch of %d: set Options.DropLast, or Config.Mask", n, global)
}

// names returns all fields of c.
func (c Config) names() []string { return slices.Concat(c.Inputs, c.Labels) }

// stored returns the fields of the Source, without the fields that a Collate makes.
func (c Config) stored(o loader.Options) []string {
	return slices.DeleteFunc(c.names(), func(name string) bool {
		return slices.ContainsFunc(o.Collate.Adds, func(s tensor.Spec) bool { return s.Name == name })
	})
}

// fields returns the tensors of a batch in the order in which the loader has their fields,
// once the loader has found o valid.
func (c Config) fields(src loader.Source, o loader.Options) ([]field, error) {
	specs := src.Specs()
	var out []field
	for _, name := range c.stored(o) {
		spec := specs[slices.IndexFunc(specs, func(s tensor.Spec) bool { return s.Name == name })]
		if t := o.Transforms[name]; t != nil {
			var err error
			if spec, err = t.Output(spec); err != nil {
				return nil, fmt.Errorf("field %q: %w", name, err)
			}
		}
		if spec.Ragged {
			return nil, fmt.Errorf("field %q has records of different lengths, and GoMLX wants batches of one shape: "+
				"transform it by loader.Pad", name)
		}
		out = append(out, newField(spec, o.BatchSize))
	}
	for _, spec := range o.Collate.Adds {
		out = append(out, newField(spec, o.BatchSize))
	}
	return out, nil
}

func newField(spec tensor.Spec, batch int) field {
	axes := append([]int{batch}, spec.Shape...)
	if len(spec.Shape) == 0 {
		axes = append(axes, 1)
	}
	return field{spec: spec, shape: shapes.Make(kinds[spec.DType], axes...), size: spec.RecordBytes()}
}

// indexOf returns the index of an existing field.
func (d *Dataset) indexOf(name string) int {
	return slices.IndexFunc(d.fields, func(f field) bool { return f.spec.Name == name })
}

// kinds are GoMLX's names of element types.
var kinds = map[tensor.DType]dtypes.DType{
	tensor.Bool: dtypes.Bool, tensor.Uint8: dtypes.Uint8, tensor.Int8: dtypes.Int8,
	tensor.Uint16: dtypes.Uint16, tensor.Int16: dtypes.Int16, tensor.Uint32: dtypes.Uint32, tensor.Int32: dtypes.Int32,
	tensor.Uint64: dtypes.Uint64, tensor.Int64: dtypes.Int64,
	tensor.Float16: dtypes.Float16, tensor.BFloat16: dtypes.BFloat16, tensor.Float32: dtypes.Float32,
	tensor.Float64: dtypes.Float64,
}

// workers returns how many goroutines fill batches: as many as the loader would have.
func workers(o loader.Options) int {
	if o.Workers > 0 {
		return o.Workers
	}
	return max(1, runtime.GOMAXPROCS(0)/max(1, o.World.LocalSize)-1)
}
