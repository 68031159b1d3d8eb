package gomlxds

import (
	"context"
	"encoding/binary"
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
	from *loader.BatchFiller
	dst  [][]byte // of the batch being made: one per field, while its tensor is open
}

// fill makes the batch of a position. After an error it makes no batch.
func (f *filler) fill(ctx context.Context, at position) (train.Batch, error) {
	before := time.Now()
	defer func() { f.d.filled(time.Since(before)) }()
	all, err := f.allocate()
	if err == nil {
		err = f.into(all, func() error {
			b, err := f.from.Fill(ctx, at.epoch, at.step, f.dst[:len(f.d.fields)]...)
			if err == nil {
				f.pad(b)
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

// allocate returns the tensors of a batch: a tensor for each field, the lengths, and the
// mask.
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
	for range c.Lengths {
		shape(shapes.Make(dtypes.Int32, f.d.batch))
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

// pad zeroes the rows after the records of b, and writes lengths and mask.
func (f *filler) pad(b *loader.MutableBatch) {
	for i, field := range f.d.fields {
		clear(f.dst[i][b.Len()*field.size:])
	}
	extra := f.dst[len(f.d.fields):]
	for i, name := range f.d.config.Lengths {
		f.lengths(extra[i], b.Offsets(name), name)
	}
	if !f.d.config.Mask {
		return
	}
	mask := extra[len(f.d.config.Lengths)]
	clear(mask)
	for i, valid := range b.Mask() {
		if valid {
			mask[i] = 1
		}
	}
}

// lengths writes the number of rows of each record of a field, up to the room available.
func (f *filler) lengths(dst []byte, offsets []int64, name string) {
	clear(dst)
	most := f.d.fields[f.d.indexOf(name)].spec.Shape[0]
	for i, end := range offsets[1:] {
		binary.NativeEndian.PutUint32(dst[4*i:], uint32(min(int(end-offsets[i]), most)))
	}
}

// batch puts tensors where GoMLX looks for them. There are fewer tensors if making them
// failed.
func (f *filler) batch(all []*tensors.Tensor) train.Batch {
	n := min(len(all), len(f.d.fields))
	lengths := min(len(all)-n, len(f.d.config.Lengths))
	fields, extra := all[:n], all[n:]
	return train.Batch{
		Inputs: append(f.pick(fields, f.d.config.Inputs), extra[:lengths]...),
		Labels: append(f.pick(fields, f.d.config.Labels), extra[lengths:]...),
	}
}

// pick returns the tensors of some of the fields.
func (f *filler) pick(fields []*tensors.Tensor, names []string) []*tensors.Tensor {
	var out []*tensors.Tensor
	for _, name := range names {
		if i := f.d.indexOf(name); i < len(fields) {
			out = append(out, fields[i])
		}
	}
	return out
}
