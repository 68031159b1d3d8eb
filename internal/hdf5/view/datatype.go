package view

import (
	"encoding/binary"
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// Classes of datatypes, with the version of their messages.
const (
	classFixed  = 0x10
	classFloat  = 0x11
	classString = 0x13
	classEnum   = 0x38
)

// int64Type is the datatype message of int64.
var int64Type = fixedType(8, true)

// typeOf returns the datatype message of a stored type. BFloat16 is stored as its bits; Bool as
// h5py stores it.
func typeOf(t tensor.DType) ([]byte, error) {
	switch t {
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.BFloat16:
		return fixedType(t.Size(), false), nil
	case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
		return fixedType(t.Size(), true), nil
	case tensor.Float16:
		return floatType(2, 10, 5), nil
	case tensor.Float32:
		return floatType(4, 23, 8), nil
	case tensor.Float64:
		return floatType(8, 52, 11), nil
	case tensor.Bool:
		return boolType(), nil
	}
	return nil, fmt.Errorf("no HDF5 type for %v", t)
}

func typeHead(class byte, bits [3]byte, size int) []byte {
	return binary.LittleEndian.AppendUint32([]byte{class, bits[0], bits[1], bits[2]}, uint32(size))
}

func fixedType(size int, signed bool) []byte {
	bits := [3]byte{}
	if signed {
		bits[0] = 1 << 3
	}
	b := typeHead(classFixed, bits, size)
	b = binary.LittleEndian.AppendUint16(b, 0) // offset of the first bit
	return binary.LittleEndian.AppendUint16(b, uint16(8*size))
}

// floatType is an IEEE 754 type whose mantissa has an implied bit.
func floatType(size int, mantissa, exponent uint8) []byte {
	b := typeHead(classFloat, [3]byte{2 << 4, byte(8*size - 1), 0}, size)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(8*size))
	b = append(b, mantissa, exponent, 0, mantissa)
	return binary.LittleEndian.AppendUint32(b, 1<<(exponent-1)-1)
}

// textType is UTF-8 of n bytes, padded with zeros.
func textType(n int) []byte { return typeHead(classString, [3]byte{1 | 1<<4}, n) }

func boolType() []byte {
	b := typeHead(classEnum, [3]byte{2}, 1)
	b = append(b, fixedType(1, true)...)
	return append(b, "FALSE\x00TRUE\x00\x00\x01"...)
}
