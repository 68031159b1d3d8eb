package layout

import (
	"bytes"
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// HeaderBytes is the length of the header of every .npy file of a dataset. It is a page, so that the rows after it can
// be mapped, and less than the 10,000 bytes that NumPy accepts.
const HeaderBytes = 4096

// Header returns the HeaderBytes bytes that an .npy file (format 1.0) of a dataset with n rows of spec begins with.
// OpenFlat takes no others, so a manifest determines all headers:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
func Header(spec tensor.Spec, n int64) []byte {
	shape := make(tensor.Shape, 0, len(spec.Shape)+1)
	shape = append(append(shape, int(n)), spec.Shape...)
	h := bytes.Repeat([]byte{' '}, HeaderBytes)
	copy(h, "\x93NUMPY\x01\x00")
	h[8], h[9] = byte((HeaderBytes-10)&0xff), byte((HeaderBytes-10)>>8)
	copy(h[10:], fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %v, }", spec.DType.Descr(), shape))
	h[HeaderBytes-1] = '\n'
	return h
}

// ArrayBytes returns the size of an .npy file with n rows of rowBytes. A file without rows has a zero byte after its
// header, as NumPy cannot map an empty array.
func ArrayBytes(n int64, rowBytes int) int64 {
	return HeaderBytes + max(1, n*int64(rowBytes))
}

// checkHeader compares a file's header with the only header that is right for its rows.
func checkHeader(got []byte, spec tensor.Spec, n int64) error {
	want := Header(spec, n)
	if bytes.Equal(got, want) {
		return nil
	}
	at := 0
	for at < len(got) && got[at] == want[at] {
		at++
	}
	return fmt.Errorf("header at byte %#x: %q, but the manifest says %q: %w",
		at, headerText(got), headerText(want), ErrCorrupt)
}

func headerText(h []byte) string {
	if len(h) < 10 {
		return string(h)
	}
	h = bytes.TrimRight(h[10:], " \n")
	return string(h[:min(len(h), 200)])
}

// SumsHeader returns the header of a file with that number of checksums.
func SumsHeader(blocks int64) []byte { return Header(ChecksumSpec, blocks) }

// ChecksumSpec is the array that a checksum file holds.
var ChecksumSpec = tensor.Spec{Name: "crc", DType: tensor.Uint32}
