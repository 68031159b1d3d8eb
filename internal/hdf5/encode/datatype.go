package encode

import (
	"encoding/binary"
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// Classes of datatypes in the low four bits, with the version of the message in the high ones: 1,
// or 3 for an enumeration (HDF5 File Format Specification, IV.A.2.d).
const (
	classFixed  = 0x10
	classFloat  = 0x11
	classString = 0x13
	classEnum   = 0x38
)

// message returns the datatype message of e. HDF5 has no BFloat16, which is stored as the unsigned
// integer of its bits.
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

// typeHead returns the beginning of each datatype message: class, 24 bits that depend on the class,
// and the element's bytes.
func typeHead(class byte, bits [3]byte, size int) []byte {
	return binary.LittleEndian.AppendUint32([]byte{class, bits[0], bits[1], bits[2]}, uint32(size))
}

// signed is the bit of an integer type that says that it has a sign.
const signed = 1 << 3

// fixedType returns the message of an integer type of size bytes, little endian. sign is signed or
// 0.
func fixedType(size int, sign byte) []byte {
	b := typeHead(classFixed, [3]byte{sign}, size)
	b = binary.LittleEndian.AppendUint16(b, 0) // offset of the first bit
	return binary.LittleEndian.AppendUint16(b, uint16(8*size))
}

// floatType returns the message of an IEEE 754 type, little endian. mantissa and exponent are in
// bits; the mantissa's highest bit, which is 1, is not stored.
func floatType(size int, mantissa, exponent uint8) []byte {
	b := typeHead(classFloat, [3]byte{2 << 4, byte(8*size - 1), 0}, size) // implied mantissa bit; the sign comes last
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(8*size))
	b = append(b, mantissa, exponent, 0, mantissa)
	return binary.LittleEndian.AppendUint32(b, 1<<(exponent-1)-1)
}

// boolType returns the message of h5py's bool: an enumeration of int8 with FALSE = 0 and TRUE = 1.
// Version 3 does not pad the names.
func boolType() []byte {
	b := typeHead(classEnum, [3]byte{2}, 1)
	b = append(b, fixedType(1, signed)...)
	return append(b, "FALSE\x00TRUE\x00\x00\x01"...)
}
