package meta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// class is the kind of a datatype.
type class uint8

// The classes of HDF5.
const (
	Fixed class = iota // integer
	Float
	Time
	String // of fixed length
	Bitfield
	Opaque
	Compound
	Reference
	Enum
	Vlen // sequence of variable length; a string if Datatype.VlenString
	Array
	Complex
)

var classNames = [...]string{"integer", "float", "time", "string", "bitfield", "opaque", "compound", "reference",
	"enum", "vlen", "array", "complex"}

// String returns the name, for example "integer".
func (c class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// Padding says how a fixed-length string ends.
type Padding uint8

// The paddings of strings.
const (
	NullTerm Padding = iota // up to the first NUL
	NullPad                 // trailing NULs are not part of it
	SpacePad                // trailing spaces and NULs are not part of it
)

// Datatype describes one element. Fields that do not belong to its class are zero.
type Datatype struct {
	Class     class
	Size      int64 // bytes of an element as stored
	BigEndian bool  // Fixed, Float, Bitfield of more than one byte
	Signed    bool  // Fixed
	Committed bool  // the type is a named datatype of the file

	BitOffset int // Fixed, Bitfield, Float: lowest bit that counts
	Precision int // Fixed, Bitfield, Float: bits that count
	Format    floatFormat

	Padding    Padding // String, strings of class Vlen
	UTF8       bool    // String, strings of class Vlen; otherwise ASCII
	VlenString bool    // Vlen: string, not a sequence

	Tag       string    // Opaque
	RefRegion bool      // Reference to a region, not to an object
	Base      *Datatype // Enum, Vlen, Array, Complex
	Dims      []int64   // Array
	Members   []Member  // Compound, Enum
}

// floatFormat says where the parts of a floating-point number are, in bits.
type floatFormat struct {
	Sign              int
	ExpLoc, ExpSize   int
	MantLoc, MantSize int
	Bias              uint32
	Implied           bool // the mantissa's leading 1 is not stored
	VAXOrder          bool // bytes in the order of a VAX
}

// Member is a field of a compound, or a name of an enum.
type Member struct {
	Name   string
	Offset int64     // Compound: where the field starts in the element
	Type   *Datatype // Compound
	Value  int64     // Enum; the same bits if the base is unsigned
}

// IsBool reports whether t is h5py's encoding of bool: an enum of one byte with FALSE 0 and TRUE 1.
func (t *Datatype) IsBool() bool {
	if t.Class != Enum || t.Size != 1 || len(t.Members) != 2 {
		return false
	}
	want := [2]Member{{Name: "FALSE", Value: 0}, {Name: "TRUE", Value: 1}}
	same := func(a, b Member) bool { return a.Name == b.Name && a.Value == b.Value }
	m := t.Members
	return same(m[0], want[0]) && same(m[1], want[1]) || same(m[0], want[1]) && same(m[1], want[0])
}

// IsComplex reports whether t is a complex number: the class of HDF5 2.0, or h5py's compound of a real and an imaginary
// part.
func (t *Datatype) IsComplex() bool {
	if t.Class == Complex {
		return true
	}
	m := t.Members
	return t.Class == Compound && len(m) == 2 && m[0].Name == "r" && m[1].Name == "i" && m[0].Offset == 0 &&
		m[0].Type.Class == Float && m[1].Offset == m[0].Type.Size && t.Size == 2*m[1].Offset &&
		m[0].Type.DType() == m[1].Type.DType() && m[0].Type.BigEndian == m[1].Type.BigEndian
}

// Part returns the type of the real and the imaginary part of a complex number.
func (t *Datatype) Part() *Datatype {
	if t.Class == Complex {
		return t.Base
	}
	return t.Members[0].Type
}

// Classes returns the names of an enumeration whose values are 0 to n-1, and nil for any other type. Only such values
// can be labels without changing a number.
func (t *Datatype) Classes() []string {
	if t.Class != Enum || t.IsBool() || t.Base.DType() == tensor.Invalid {
		return nil
	}
	names := make([]string, len(t.Members))
	for _, m := range t.Members {
		if m.Value < 0 || m.Value >= int64(len(names)) || names[m.Value] != "" || slices.Contains(names, m.Name) {
			return nil
		}
		names[m.Value] = m.Name
	}
	return names
}

var floatFormats = map[tensor.DType]floatFormat{
	tensor.Float16:  {Sign: 15, ExpLoc: 10, ExpSize: 5, MantSize: 10, Bias: 15, Implied: true},
	tensor.BFloat16: {Sign: 15, ExpLoc: 7, ExpSize: 8, MantSize: 7, Bias: 127, Implied: true},
	tensor.Float32:  {Sign: 31, ExpLoc: 23, ExpSize: 8, MantSize: 23, Bias: 127, Implied: true},
	tensor.Float64:  {Sign: 63, ExpLoc: 52, ExpSize: 11, MantSize: 52, Bias: 1023, Implied: true},
}

// DType returns the element type with the same values, apart from byte order, or tensor.Invalid if no type has these
// values. An enum that is not bool gives the type of its integers, a bitfield (PyTables stores bool so) a type of
// unsigned integers.
func (t *Datatype) DType() tensor.DType {
	switch {
	case t.IsBool():
		return tensor.Bool
	case t.Class == Enum:
		return t.Base.DType()
	case t.Class == Fixed && t.Partial():
		return fixedType(t.Size, t.Signed)
	case t.BitOffset != 0 || int64(t.Precision) != 8*t.Size:
		return tensor.Invalid
	case t.Class == Fixed || t.Class == Bitfield:
		return fixedType(t.Size, t.Signed)
	case t.Class == Float:
		for d, f := range floatFormats {
			if f == t.Format && int64(d.Size()) == t.Size {
				return d
			}
		}
	}
	return tensor.Invalid
}

// Partial reports whether an integer has bits that are not part of its value.
func (t *Datatype) Partial() bool {
	return t.Class == Fixed && t.Precision > 0 && t.Size <= 8 && (t.BitOffset != 0 || int64(t.Precision) != 8*t.Size)
}

// Shifts returns how far an integer, as a number of 8 bytes, has to be shifted to the left and then to the right, so
// that only the bits of its value are left, with their sign. Both are 0 for other types, and for integers all of whose
// bits count.
func (t *Datatype) Shifts() (left, right int) {
	if t.Class == Enum {
		return t.Base.Shifts()
	}
	if !t.Partial() {
		return 0, 0
	}
	return 64 - t.BitOffset - t.Precision, 64 - t.Precision
}

// fixedType returns the integer type of that many bytes, or tensor.Invalid: HDF5 has integers of any size.
func fixedType(size int64, signed bool) tensor.DType {
	types := map[int64][2]tensor.DType{
		1: {tensor.Uint8, tensor.Int8},
		2: {tensor.Uint16, tensor.Int16},
		4: {tensor.Uint32, tensor.Int32},
		8: {tensor.Uint64, tensor.Int64},
	}
	if signed {
		return types[size][1]
	}
	return types[size][0]
}

// Swapped reports whether elements must have their bytes swapped to be little endian.
func (t *Datatype) Swapped() bool {
	if t.Class == Enum || t.Class == Array {
		return t.Base.Swapped()
	}
	return t.BigEndian && t.Size > 1
}

// String describes the type in one line: "uint8", "big-endian float32", "bool",
// "string[10] ascii", "string utf-8", "compound{x: float32, y: float32}", with gaps
// "compound[16]{a: int8, b: float32 at 4}",
// "array(3, 2) of int8", "vlen of int32".
func (t *Datatype) String() string {
	switch t.Class {
	case Fixed, Float:
		return t.number()
	case Bitfield:
		return fmt.Sprintf("bitfield[%d]", t.Size)
	case String:
		return fmt.Sprintf("string[%d] %s", t.Size, t.charset())
	case Opaque:
		return strings.TrimSuffix(fmt.Sprintf("opaque[%d] %s", t.Size, t.Tag), " ")
	case Reference:
		if t.RefRegion {
			return "region reference"
		}
		return "object reference"
	case Vlen:
		if t.VlenString {
			return "string " + t.charset()
		}
		return "vlen of " + t.Base.String()
	}
	return t.nested()
}

// nested describes a type with parts for people, in messages and in inspect.
func (t *Datatype) nested() string {
	switch t.Class {
	case Compound:
		return t.fields()
	case Enum:
		if t.IsBool() {
			return "bool"
		}
		var parts []string
		for _, m := range t.Members {
			parts = append(parts, fmt.Sprintf("%s=%d", m.Name, m.Value))
		}
		return "enum " + t.Base.String() + "{" + strings.Join(parts, ", ") + "}"
	case Array:
		dims := make(tensor.Shape, len(t.Dims))
		for i, d := range t.Dims {
			dims[i] = int(d)
		}
		return "array" + dims.String() + " of " + t.Base.String()
	case Complex:
		return "complex of " + t.Base.String()
	}
	return fmt.Sprintf("%v[%d]", t.Class, t.Size)
}

// fields describes a compound, with places and size where there are gaps.
func (t *Datatype) fields() string {
	var parts []string
	end := int64(0)
	for _, m := range t.Members {
		part := m.Name + ": " + m.Type.String()
		if m.Offset != end {
			part += fmt.Sprintf(" at %d", m.Offset)
		}
		parts, end = append(parts, part), m.Offset+m.Type.Size
	}
	size := ""
	if end != t.Size {
		size = fmt.Sprintf("[%d]", t.Size)
	}
	return "compound" + size + "{" + strings.Join(parts, ", ") + "}"
}

func (t *Datatype) charset() string {
	if t.UTF8 {
		return "utf-8"
	}
	return "ascii"
}

// number describes a number type in words, also a type that has no tensor.DType.
func (t *Datatype) number() string {
	name := t.DType().String()
	if t.DType() == tensor.Invalid || t.Partial() {
		name = t.oddNumber()
	}
	switch {
	case t.Format.VAXOrder:
		return "vax-order " + name
	case t.Swapped():
		return "big-endian " + name
	}
	return name
}

// oddNumber describes a number that is not one of the usual types, such as an integer of 12 bits from a camera.
func (t *Datatype) oddNumber() string {
	if t.Class == Float {
		return fmt.Sprintf("float[%d] of %d bits (%d exponent, %d mantissa)", t.Size, t.Precision, t.Format.ExpSize,
			t.Format.MantSize)
	}
	sign := "uint"
	if t.Signed {
		sign = "int"
	}
	return fmt.Sprintf("%s[%d] of %d bits", sign, t.Size, t.Precision)
}

// Unpad cuts the padding from a stored string.
func (t *Datatype) Unpad(p []byte) string {
	switch t.Padding {
	case NullPad:
		return strings.TrimRight(string(p), "\x00")
	case SpacePad:
		return strings.TrimRight(string(p), " \x00") // h5py and MATLAB pad such strings with NULs
	}
	return untilNUL(p)
}
