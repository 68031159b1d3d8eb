package view

import (
	"encoding/binary"

	"github.com/penstock/penstock/store"
)

// header is the messages of an object header.
type header struct{ messages []byte }

func (h *header) message(kind byte, body []byte) { h.messages = appendMessage(h.messages, kind, body) }

func appendMessage(b []byte, kind byte, body []byte) []byte {
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(body)))
	return append(append(b, 0), body...)
}

// array says what elements there are.
func (h *header) array(typ []byte, dims []int64) {
	h.message(msgDataspace, simple(dims))
	h.message(msgDatatype, typ)
	h.message(msgFill, []byte{3, 2 | 2<<2}) // allocated late, written if set; it is not
}

func simple(dims []int64) []byte {
	m := []byte{2, byte(len(dims)), 0, 1}
	for _, n := range dims {
		m = binary.LittleEndian.AppendUint64(m, uint64(n))
	}
	return m
}

// layout says that the elements are in one piece.
func (h *header) layout(at uint64, size int64) {
	m := binary.LittleEndian.AppendUint64([]byte{3, 1}, at)
	h.message(msgLayout, binary.LittleEndian.AppendUint64(m, uint64(size)))
}

// attributes adds attributes, which fit.
func (h *header) attributes(list []store.Attribute) error {
	for i := range list {
		a := &list[i]
		t, err := elementType(a)
		if err != nil {
			return err
		}
		space := []byte{2, 0, 0, 0} // scalar
		if a.Count > 0 {
			space = simple([]int64{int64(a.Count)})
		}
		m := []byte{3, 0}
		for _, n := range []int{len(a.Name) + 1, len(t), len(space)} {
			m = binary.LittleEndian.AppendUint16(m, uint16(n))
		}
		m = append(m, 1) // the name is UTF-8
		m = append(append(m, a.Name...), 0)
		h.message(msgAttribute, append(append(append(m, t...), space...), a.Data...))
	}
	return nil
}
