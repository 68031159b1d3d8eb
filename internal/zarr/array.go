package zarr

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/tensor"
)

// open opens a file of the array and returns its size; nil if there is none.
func (a *Array) open(name string) (File, int64, error) {
	f, err := a.files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, 0, errors.Join(err, corrupt("%s is not a file", name))
	}
	return f, info.Size(), nil
}

// Spec returns the type and shape of a record, which is a step along the first axis. A complex number is two, on a
// last axis of its own.
func (a *Array) Spec() (tensor.Spec, error) {
	if a.Err != nil {
		return tensor.Spec{}, a.Err
	}
	s := tensor.Spec{Name: a.Path, DType: a.number.dtype, Shape: tensor.Shape{}}
	for _, n := range a.Shape[1:] {
		s.Shape = append(s.Shape, int(n))
	}
	if a.number.parts > 1 {
		s.Shape = append(s.Shape, a.number.parts)
	}
	return s, nil
}

// Records returns the length of the first axis.
func (a *Array) Records() int64 { return a.Shape[0] }

// ChunkRecords returns how many records a chunk has a part of.
func (a *Array) ChunkRecords() int64 { return a.Chunks[0] }

// Reader returns a reader of the records.
func (a *Array) Reader(opts chunk.Options) (*chunk.Reader, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	r, err := chunk.NewArray(chunk.Array{
		Path: "zarr: array /" + a.Path, Dims: a.Shape, ChunkDims: a.Chunks, Elem: int64(a.number.bytes()), Fill: a.fill, Chunks: chunks{a},
	}, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	return r, nil
}

// How says how the records are stored, for people.
func (a *Array) How() string {
	s := fmt.Sprintf("chunks of %v", a.Chunks)
	if a.shard != nil {
		s += fmt.Sprintf(" in shards of %v", a.Shards)
	}
	for _, c := range a.coding.steps {
		s += ", " + c.name
	}
	return s
}

// Scalar reports whether the array is one element, which has no records.
func (a *Array) Scalar() bool { return a.Shape != nil && len(a.Shape) == 0 }
