package encode

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

// message returns the datatype message. BFloat16 is stored as its bits; Bool as h5py stores it.
func (e Element) message() ([]byte, error) {
	if e.Text > 0 {
		return typeHead(classString, [3]byte{1 | 1<<4}, e.Text), nil // UTF-8, padded with zeros
	}
	switch e.DType {
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.BFloat16:
		return fixedType(e.DType.Size(), 0), nil
	case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
		return fixedType(e.DType.Size(), signed), nil
	case tensor.Float16:
		return floatType(2, 10, 5), nil
	case tensor.Float32:
		return floatType(4, 23, 8), nil
	case tensor.Float64:
		return floatType(8, 52, 11), nil
	case tensor.Bool:
		return boolType(), nil
	}
	return nil, fmt.Errorf("no HDF5 type for %v", e.DType)
}

func typeHead(class byte, bits [3]byte, size int) []byte {
	return binary.LittleEndian.AppendUint32([]byte{class, bits[0], bits[1], bits[2]}, uint32(size))
}

// signed is the bit of an integer type that has a sign.
const signed = 1 << 3

func fixedType(size int, sign byte) []byte {
	b := typeHead(classFixed, [3]byte{sign}, size)
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

func boolType() []byte {
	b := typeHead(classEnum, [3]byte{2}, 1)
	b = append(b, fixedType(1, signed)...)
	return append(b, "FALSE\x00TRUE\x00\x00\x01"...)
}
