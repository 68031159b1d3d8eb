package array

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/tensor"
)

func FuzzNPYHeader(f *testing.F) {
	for _, header := range []string{
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", "{'shape':(),'descr':'|b1','fortran_order':True}", "{'descr': [('a', '<f4')]}", "{'shape': (1L,",
	} {
		f.Add(npyOf(1, header))
		f.Add(npyOf(2, header))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ReadNPY(bytes.NewReader(data))
		if err != nil {
			return
		}
		if h.Offset > int64(len(data)) || h.DType == tensor.Invalid || len(h.Shape) > tensor.MaxRank {
			t.Fatalf("header %+v of %d bytes", h, len(data))
		}
		field, count, err := h.field("x", "x.npy")
		if err == nil && (count < 0 || field.Validate() != nil) {
			t.Fatalf("%d records of %+v", count, field)
		}
	})
}

// npyOf is a file of that version with no elements.
func npyOf(version byte, header string) []byte {
	b := append([]byte(npy.Magic), version, 0)
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return append(b, header...)
}
