package gomlxds

import (
	"context"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/penstock/penstock/loader"
)

// filler makes batches, for one goroutine.
type filler struct {
	d    *Dataset
	from *loader.Filler
	dst  [][]byte // of the batch being made: one per field, while its tensor is open
}

// fill makes the batch of a position. On error there is none.
func (f *filler) fill(ctx context.Context, at position) (train.Batch, error) {
	before := time.Now()
	defer func() { f.d.filled(time.Since(before)) }()
	all, err := f.allocate()
	if err == nil {
		err = f.into(all, func() error {
			n, err := f.from.Fill(ctx, at.epoch, at.step, f.dst[:len(f.d.fields)]...)
			if err == nil {
				f.pad(n)
			}
			return err
		})
	}
	b := f.batch(all)
	if err != nil {
		_ = b.Finalize() // what matters is why there is no batch
		return train.Batch{}, err
	}
	return b, nil
}

// allocate returns the tensors of a batch, in the order of the fields, then the mask.
func (f *filler) allocate() (all []*tensors.Tensor, err error) {
	c := f.d.config
	shape := func(s shapes.Shape) {
		if err != nil {
			return
		}
		var t *tensors.Tensor
		if t, err = tensors.FromShapeForBackend(c.Backend, c.Device, s); err == nil {
			all = append(all, t)
		}
	}
	for _, field := range f.d.fields {
		shape(field.shape)
	}
	if c.Mask {
		shape(shapes.Make(dtypes.Bool, f.d.batch))
	}
	return all, err
}

// into calls do while the memory of all tensors is in f.dst.
func (f *filler) into(all []*tensors.Tensor, do func() error) error {
	f.dst = f.dst[:0]
	var open func(rest []*tensors.Tensor) error
	open = func(rest []*tensors.Tensor) (err error) {
		if len(rest) == 0 {
			return do()
		}
		access := rest[0].MutableBytes(func(data []byte) {
			f.dst = append(f.dst, data)
			err = open(rest[1:])
		})
		if err == nil {
			err = access
		}
		return err
	}
	return open(all)
}

// pad zeroes what is behind n records, and writes the mask.
func (f *filler) pad(n int) {
	for i, field := range f.d.fields {
		clear(f.dst[i][n*field.size:])
	}
	if !f.d.config.Mask {
		return
	}
	mask := f.dst[len(f.d.fields)]
	clear(mask)
	for i, valid := range f.from.Valid() {
		if valid {
			mask[i] = 1
		}
	}
}

// batch puts tensors where GoMLX looks for them.
func (f *filler) batch(all []*tensors.Tensor) train.Batch {
	var b train.Batch
	c := f.d.config
	b.Inputs, b.Labels = f.pick(all, c.Inputs), f.pick(all, c.Labels)
	if c.Mask && len(all) > len(f.d.fields) {
		b.Labels = append(b.Labels, all[len(f.d.fields)])
	}
	return b
}

// pick returns the tensors of some fields; of those that there are, if making them failed.
func (f *filler) pick(all []*tensors.Tensor, names []string) []*tensors.Tensor {
	var out []*tensors.Tensor
	for _, name := range names {
		for i, field := range f.d.fields[:min(len(all), len(f.d.fields))] {
			if field.spec.Name == name {
				out = append(out, all[i])
			}
		}
	}
	return out
}
