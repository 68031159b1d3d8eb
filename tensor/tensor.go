// Package tensor defines the types that all other packages hand over: element
// types, record shapes, and views of bytes as arrays. It is the leaf of the
// module: no I/O, no goroutines, no dependencies.
//
// All arrays are dense, C order (the last axis varies fastest), little endian.
package tensor

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unsafe"
)

// MaxRank is the most axes that a View has, its record axis included.
const MaxRank = 8

// Shape holds the length of each axis, outermost first; empty is a scalar.
type Shape []int

// Elems returns the number of elements, 1 for a scalar.
func (s Shape) Elems() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// String writes the shape as NumPy does: "()", "(3,)", "(3, 224, 224)".
func (s Shape) String() string {
	var b strings.Builder
	b.WriteByte('(')
	for i, d := range s {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(d))
	}
	if len(s) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return b.String()
}

// Spec says what one field of a record is: one array of Shape or, where it is Ragged, any
// number of rows of Shape, none included. Tokens are ragged rows of shape (), boxes of (4,).
type Spec struct {
	Name   string `json:"name"`
	DType  DType  `json:"dtype"`
	Shape  Shape  `json:"shape"`            // of one record, without the record axis; of one row if Ragged
	Ragged bool   `json:"ragged,omitempty"` // records have lengths of their own

	// The meaning of the numbers, if the Source declares it.
	Content string `json:"content,omitempty"` // one of Contents, or empty
	Layout  string `json:"layout,omitempty"`  // CHW or HWC if records are pixels, else empty

	// Image is the image field that a mask, boxes or keypoints lie on; empty means the only image field.
	Image string `json:"image,omitempty"`

	// Instances names a group of ragged fields, such as boxes, labels and areas: row i of each is of
	// instance i, so that all fields of the group have one length in a record. It is empty for none.
	Instances string `json:"instances,omitempty"`

	// Dims are the names of the axes, if the Source knows them: the axis of the records, and then the axes of Shape.
	// An axis without a name is "".
	Dims []string `json:"dims,omitempty"`

	// Meaning is what a foreign file says about its numbers: units, calendar, scale, offset and fill value, in words
	// for an error. "" means that nothing is known. Fields of different meaning are not joined. Meaning is not stored in
	// datasets.
	Meaning string `json:"-"`

	// Coordinates identify the coordinates of the axes in Dims, if a foreign file has coordinates: equal coordinates have
	// equal identities, and "" means that an axis's coordinates are not known. The coordinates of the records are not
	// among them. Coordinates are not stored in datasets.
	Coordinates []string `json:"-"`

	// Features are the names of the columns of a sparse row, or of the values of a record of one axis: of Width or of that
	// axis. It is nil where they are not known.
	Features []string `json:"features,omitempty"`

	// Width is how many columns rows of the content Sparse have; 0 in other fields.
	Width int `json:"width,omitempty"`
}

// Unlike returns how the numbers of another field of this type differ in meaning, so that they cannot be joined; "" if the
// known meanings do not differ.
func (s Spec) Unlike(other Spec) string {
	if s.Meaning != other.Meaning && s.Meaning != "" && other.Meaning != "" {
		return fmt.Sprintf("is in %s there, and in %s here, so their numbers are not alike", s.Meaning, other.Meaning)
	}
	for k := range min(len(s.Coordinates), len(other.Coordinates)) {
		if a, b := s.Coordinates[k], other.Coordinates[k]; a != b && a != "" && b != "" {
			return fmt.Sprintf("has other values of %s there than here", s.Dims[k])
		}
	}
	return ""
}

// SetCoordinates sets the Coordinates of a field whose axes have names. id returns the identity of the coordinates of an
// axis, "" if it is not known.
func (s *Spec) SetCoordinates(id func(axis string) string) {
	if len(s.Dims) < 2 {
		return
	}
	ids := make([]string, len(s.Dims))
	for k := range ids[1:] {
		ids[k+1] = id(s.Dims[k+1])
	}
	if strings.Join(ids, "") != "" {
		s.Coordinates = ids
	}
}

// Known returns the field with its unknown Meaning and Coordinates taken from another field of the same meaning.
func (s Spec) Known(other Spec) Spec {
	s.Meaning = cmp.Or(s.Meaning, other.Meaning)
	if s.Coordinates == nil && len(s.Dims) == len(other.Dims) {
		s.Coordinates = other.Coordinates
	}
	return s
}

// Values of Spec.Layout: which axis of an image is which.
const (
	CHW = "CHW"
	HWC = "HWC"
)

// RecordBytes returns the bytes of one record of the field; if it is Ragged, of one row.
func (s Spec) RecordBytes() int { return s.DType.Size() * s.Shape.Elems() }

// Validate reports what makes the Spec unusable: no name, an invalid type, an axis that is
// not positive, too many axes, a record of more than 2^40 bytes, or a content whose values are of
// another type or shape.
func (s Spec) Validate() error {
	if s.Name == "" {
		return errors.New("field has no name")
	}
	if s.DType.Size() == 0 {
		return fmt.Errorf("field %q: no dtype", s.Name)
	}
	if len(s.Shape) >= MaxRank {
		return fmt.Errorf("field %q: shape %v has %d axes; at most %d are possible", s.Name, s.Shape, len(s.Shape), MaxRank-1)
	}
	const limit = 1 << 40
	bytes := s.DType.Size()
	for _, d := range s.Shape {
		if d <= 0 || d > limit/bytes {
			return fmt.Errorf("field %q: shape %v: every axis must be positive and a record smaller than 1 TiB", s.Name, s.Shape)
		}
		bytes *= d
	}
	return s.validateContent()
}

// View is an array over bytes that somebody else owns: it is valid for as long as they
// say, and copying a View copies no data. The zero View has no elements.
type View struct {
	data  []byte
	dims  [MaxRank]int
	rank  uint8
	dtype DType
}

// Of returns data as n records of spec. It allocates nothing, and panics if data is not
// exactly that long.
func Of(spec Spec, n int, data []byte) View {
	if len(spec.Shape) >= MaxRank {
		panic("tensor: too many axes")
	}
	if len(data) != n*spec.RecordBytes() {
		panic("tensor: data has not the length that the shape needs")
	}
	v := View{data: data, rank: uint8(len(spec.Shape) + 1), dtype: spec.DType}
	v.dims[0] = n
	copy(v.dims[1:], spec.Shape)
	return v
}

// DType returns the element type.
func (v View) DType() DType { return v.dtype }

// Rank returns the number of axes.
func (v View) Rank() int { return int(v.rank) }

// Dim returns the length of axis i.
func (v View) Dim(i int) int { return v.dims[:v.rank][i] }

// Shape returns all axis lengths in a new slice.
func (v View) Shape() Shape { return append(Shape(nil), v.dims[:v.rank]...) }

// Bytes returns the bytes under the view, not a copy.
func (v View) Bytes() []byte { return v.data }

// Len returns the number of records: the length of the first axis.
func (v View) Len() int { return v.dims[0] }

// Slice returns records [a, b) as a View of the same bytes. It panics if the View does not have these records.
func (v View) Slice(a, b int) View {
	if a < 0 || b < a || b > v.dims[0] {
		panic("tensor: slice out of range")
	}
	size := 0
	if v.dims[0] > 0 {
		size = len(v.data) / v.dims[0]
	}
	v.data = v.data[a*size : b*size : b*size]
	v.dims[0] = b - a
	return v
}

// Element lists the Go types that As can give.
type Element interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | Half | Brain | float32 | float64
}

// As returns the elements of v as a slice over the same bytes. It panics if v holds
// another type: T must be the Go type of v.DType (Half for float16, Brain for bfloat16,
// uint8 for bool, as a file may hold other values than 0 and 1).
//
// The bytes of a View made by this module are aligned for T. As panics for other
// bytes that are not.
func As[T Element](v View) []T {
	if want := dtypeOf[T](); want != v.dtype && !(want == Uint8 && v.dtype == Bool) {
		panic("tensor: As of another type: view is " + v.dtype.String() + ", asked for " + dtypeOf[T]().String())
	}
	return Elements[T](v.data)
}

// Elements returns bytes as elements of a type, over the same memory. It panics if they are not aligned for it; bytes
// at the end that are less than an element are left out.
func Elements[T Element](data []byte) []T {
	if len(data) == 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(data))
	size := unsafe.Sizeof(*new(T))
	if uintptr(p)%size != 0 {
		panic("tensor: bytes that are not aligned for their type")
	}
	n := len(data) / int(size)
	return unsafe.Slice((*T)(p), n)[:n:n]
}

// From returns values as records of a shape, over the same memory: As of the View gives them back.
// It panics if they are not a whole number of records.
func From[T Element](values []T, shape ...int) View {
	size := int(unsafe.Sizeof(*new(T)))
	spec := Spec{DType: dtypeOf[T](), Shape: shape}
	elems := spec.Shape.Elems()
	if elems <= 0 || len(values)%elems != 0 {
		panic(fmt.Sprintf("tensor: From: %d values are not records of shape %v", len(values), spec.Shape))
	}
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*size)
	return Of(spec, len(values)/elems, data)
}

func dtypeOf[T Element]() DType {
	switch any(*new(T)).(type) {
	case uint8:
		return Uint8
	case int8:
		return Int8
	case uint16:
		return Uint16
	case int16:
		return Int16
	case uint32:
		return Uint32
	case int32:
		return Int32
	case uint64:
		return Uint64
	case int64:
		return Int64
	case Half:
		return Float16
	case Brain:
		return BFloat16
	case float32:
		return Float32
	case float64:
		return Float64
	}
	return Invalid
}
