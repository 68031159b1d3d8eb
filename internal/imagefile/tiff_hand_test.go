package imagefile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// tiffFile returns a TIFF of one strip, with these SHORT entries, which are in order and have a
// place for the strip: the offset of strip is that of its bytes, after the directory.
func tiffFile(order binary.AppendByteOrder, strip []byte, entries ...[2]uint16) []byte {
	mark := "II"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		mark = "MM"
	}
	b := order.AppendUint32(order.AppendUint16([]byte(mark), 42), 8)
	b = order.AppendUint16(b, uint16(len(entries)))
	for _, e := range entries {
		b = order.AppendUint32(order.AppendUint16(order.AppendUint16(b, e[0]), 3), 1)
		value := e[1]
		if e[0] == 273 { // StripOffsets
			value = uint16(8 + 2 + 12*len(entries) + 4)
		}
		b = order.AppendUint16(order.AppendUint16(b, value), 0)
	}
	return append(order.AppendUint32(b, 0), strip...)
}

// The differences of predictor 2 are summed up in samples of 64 bits, too, carries included.
func TestTIFFPredictorOf64Bits(t *testing.T) {
	rows := [][3]uint64{{1<<63 + 5, 1<<63 + 4, 3}, {0xffffffff, 1 << 32, 7}}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for format, dtype := range map[uint16]tensor.DType{1: tensor.Uint64, 2: tensor.Int64} {
			var strip, want []byte
			for _, row := range rows {
				last := uint64(0)
				for _, v := range row {
					strip, want, last = order.AppendUint64(strip, v-last), binary.LittleEndian.AppendUint64(want, v), v
				}
			}
			m, err := tiffValues(New(Options{}), tiffFile(order, strip, [2]uint16{256, 3}, [2]uint16{257, 2}, [2]uint16{258, 64},
				[2]uint16{259, 1}, [2]uint16{262, 1},
				[2]uint16{273}, [2]uint16{277, 1}, [2]uint16{278, 2}, [2]uint16{279, uint16(len(strip))}, [2]uint16{317,
					2}, [2]uint16{339, format}))
			if err != nil {
				t.Fatal(order, dtype, err)
			}
			if m.DType != dtype || !bytes.Equal(m.Pix, want) {
				t.Errorf("%v %v: %v %x, want %x", order, dtype, m.DType, m.Pix, want)
			}
		}
	}
}

// FillOrder 2 has the first pixel in the lowest bit: the values are Pillow's.
func TestTIFFFillOrder(t *testing.T) {
	for _, c := range []struct {
		bits, width int
		strip, want []byte
	}{
		{1, 10, []byte{0x05, 0x02}, []byte{255, 0, 255, 0, 0, 0, 0, 0, 0, 255}},
		{8, 3, []byte{0x01, 0x80, 0x3c}, []byte{0x80, 0x01, 0x3c}},
	} {
		data := tiffFile(binary.LittleEndian, c.strip, [2]uint16{256, uint16(c.width)}, [2]uint16{257, 1},
			[2]uint16{258, uint16(c.bits)}, [2]uint16{259, 1}, [2]uint16{262, 1},
			[2]uint16{266, 2}, [2]uint16{273}, [2]uint16{277, 1}, [2]uint16{278, 1}, [2]uint16{279, uint16(len(c.strip))})
		got, err := openAll(t, New(Options{Color: Gray}), data)
		require.NoError(t, err)
		if !bytes.Equal(got.pix, c.want) {
			t.Errorf("%d bits: %v, want %v", c.bits, got.pix, c.want)
		}
	}
}

// Lines of CCITT group 3 may be filled up with zeros before their end, so that the end-of-line code ends with a byte, as
// Ghostscript and fax2tiff write them, and may lack the code before the first line or after the last. libtiff reads all
// of them.
func TestTIFFFax(t *testing.T) {
	const eol = "000000000001"
	// white 8; white 3 and black 5; white 0, black 8; white 5, whose code ends with zeros, and black 3
	lines := []string{"10011", "1000" + "0011", "00110101" + "000101", "1100" + "10"}
	var want []byte
	for _, white := range []int{8, 3, 0, 5} {
		want = append(append(want, bytes.Repeat([]byte{255}, white)...), make([]byte, 8-white)...)
	}
	for name, f := range map[string]struct {
		fill          bool
		before, after string
	}{
		"plain":               {false, eol, eol + eol + eol + eol + eol + eol},
		"filled":              {true, eol, eol + eol + eol + eol + eol + eol},
		"filled, cut":         {true, eol, ""},
		"no end at the end":   {false, eol, ""},
		"no end at the begin": {true, "", eol},
	} {
		bits := f.before
		for i, line := range lines {
			bits += line
			for f.fill && (len(bits)+len(eol))%8 != 0 {
				bits += "0"
			}
			if i+1 < len(lines) {
				bits += eol
			}
		}
		bits += f.after
		var strip []byte
		for i, bit := range bits {
			if i%8 == 0 {
				strip = append(strip, 0)
			}
			strip[i/8] |= byte(bit-'0') << (7 - i%8)
		}
		got, err := openAll(t, New(Options{Color: Gray}), tiffFile(binary.LittleEndian, strip, [2]uint16{256, 8},
			[2]uint16{257, 4}, [2]uint16{258, 1}, [2]uint16{259, 3}, [2]uint16{262, 0}, [2]uint16{273}, [2]uint16{277, 1},
			[2]uint16{278, 4}, [2]uint16{279, uint16(len(strip))}, [2]uint16{292, 4}))
		if err != nil || !bytes.Equal(got.pix, want) {
			t.Errorf("%s: %v, error %v, want %v", name, got.pix, err, want)
		}
	}
}
