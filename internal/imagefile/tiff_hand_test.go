package imagefile

import (
	"bytes"
	"encoding/binary"
	"testing"

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
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.pix, c.want) {
			t.Errorf("%d bits: %v, want %v", c.bits, got.pix, c.want)
		}
	}
}
