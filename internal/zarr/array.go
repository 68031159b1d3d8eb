package zarr

import (
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/tensor"
)

// Array is an array of a hierarchy.
type Array struct {
	Path       string // in the hierarchy, with slashes; "" if it is the root
	Format     int    // version: 2 or 3
	Shape      []int64
	Chunks     []int64 // elements of what is decoded at a time: a chunk or, in a shard, one of its chunks
	Shards     []int64 // elements of a shard; nil if there are none
	Dimensions []string
	Attributes Attributes
	Err        error // why it cannot be read; Shape may be known

	number number
	text   bool
	fill   []byte // an element that was never written; nil means zeros
	coding pipeline
	shard  *sharding
	key    func(coord []int64) string // name of a chunk, or shard, in the folder of the array
	files  Files
	one    *Array // of a scalar: an array of one element that is the same
}

// Attributes are the values that users have attached to a node.
type Attributes map[string]json.RawMessage

// Meaning describes what the attributes of the array say about its numbers, in the words of [tensor.Spec].
func (a *Array) Meaning() string {
	return meta.Meaning(func(name string) string {
		var text string
		var x float64
		switch raw := a.Attributes[name]; {
		case json.Unmarshal(raw, &text) == nil:
			return fmt.Sprintf("%q", text)
		case json.Unmarshal(raw, &x) == nil:
			return fmt.Sprint(x)
		default:
			return string(raw)
		}
	})
}

// Spec returns the type and shape of a record, which is a step along the first axis. A complex number is two numbers on
// an additional last axis.
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

// ChunkRecords returns the length of a chunk along the first axis: how many records a chunk has at least a part of.
func (a *Array) ChunkRecords() int64 { return a.Chunks[0] }

// How says in words for users how the records are stored.
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

// Rows returns the array in a form that has rows: a scalar becomes an array of one element.
func (a *Array) Rows() *Array {
	if a.one == nil {
		return a
	}
	one := *a.one
	one.Path, one.Format, one.files = a.Path, a.Format, a.files
	return &one
}

// asScalar makes a scalar of an array of one element, which Rows made of a scalar.
func (a *Array) asScalar() {
	one := *a
	a.Shape, a.Chunks, a.Err = []int64{}, nil, unsupported("a scalar has no records")
	a.one = &one
}
