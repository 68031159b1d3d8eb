package main

import (
	"iter"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// memory feeds without a loader: it keeps all records in slices, and assembles batches from them on
// demand. It has the loader's order, so that the two can be compared.
type memory struct {
	images []uint8
	labels []int64
	axes   []int // of an image
	order  sampler.Sampler
	n      int
	seed   uint64
	batch  int
}

func newMemory(c config, t *task) *memory {
	return &memory{
		images: all[uint8](t.train, t.image), labels: all[int64](t.train, t.label),
		axes: t.image.Shape, order: t.order, n: t.train.Len(), seed: c.seed, batch: c.batch,
	}
}

// all returns a copy of the values of a field.
func all[T tensor.Element](ds *mmapds.Dataset, f store.Field) []T {
	var out []T
	for i := range ds.Len() {
		v, err := ds.Slice(f.Name, i, i+1)
		if err != nil {
			panic(err) // the dataset is open, and has that record
		}
		out = append(out, tensor.As[T](v)...)
	}
	return out
}

func (*memory) Name() string { return "memory" }

// Iter yields batches without end, from the first epoch on.
func (m *memory) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		indices := make([]int, m.batch)
		for epoch := 0; ; epoch++ {
			seq := m.order.Epoch(m.n, m.seed, epoch)
			for pos := 0; pos+m.batch <= seq.Len(); pos += m.batch {
				seq.Fill(pos, indices)
				if !yield(m.gather(indices), nil) {
					return
				}
			}
		}
	}
}

func (m *memory) gather(indices []int) train.Batch {
	size := len(m.images) / m.n
	var images []uint8
	var labels []int64
	for _, i := range indices {
		images = append(images, m.images[i*size:][:size]...)
		labels = append(labels, m.labels[i])
	}
	return train.Batch{
		Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(images, append([]int{m.batch}, m.axes...)...)},
		Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(labels, m.batch, 1)},
	}
}
