package encode

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Types of the messages in an object header (HDF5 File Format Specification, IV.A.2).
const (
	msgDataspace = 0x01
	msgLinkInfo  = 0x02
	msgDatatype  = 0x03
	msgFill      = 0x05
	msgLink      = 0x06
	msgExternal  = 0x07
	msgLayout    = 0x08
	msgGroupInfo = 0x0A
	msgFilters   = 0x0B
	msgAttribute = 0x0C
	msgAttrInfo  = 0x15
)

// Flags of a fill value message: when space is allocated (late, or chunk by chunk), and that the
// fill value is written only if it is set. It is not set, so nothing is written before the
// elements.
const (
	fillLate        = 2 | 2<<2
	fillIncremental = 3 | 2<<2
)

const (
	nowhere    = math.MaxUint64 // the undefined address
	maxMessage = 1<<16 - 1      // bytes of a message: its size is a uint16
)

// header collects the messages of an object header. After an error its messages are of no use;
// object returns the error.
type header struct {
	messages []byte
	err      error
}

// message appends a message of that type. A body that is too long is an error.
func (h *header) message(kind byte, body []byte) {
	if len(body) > maxMessage && h.err == nil {
		h.err = fmt.Errorf("a header message of %d bytes; HDF5 has at most %d", len(body), maxMessage)
	}
	h.messages = append(h.messages, kind)
	h.messages = binary.LittleEndian.AppendUint16(h.messages, uint16(len(body)))
	h.messages = append(append(h.messages, 0), body...)
}

// array appends the messages about the shape and type of an object's elements.
func (h *header) array(o *Object) {
	t, err := o.Element.message()
	if err != nil {
		h.err = err
		return
	}
	h.message(msgDataspace, dataspace(o.Dims))
	h.message(msgDatatype, t)
}

// dataspace returns the dataspace message, version 2, of an array, or of a scalar if there are no dims.
func dataspace(dims []int64) []byte {
	kind := byte(min(len(dims), 1))
	m := []byte{2, byte(len(dims)), 0, kind}
	for _, n := range dims {
		m = binary.LittleEndian.AppendUint64(m, uint64(n))
	}
	return m
}

// contiguous appends the messages of a dataset whose elements are size bytes in one piece, at that
// address.
func (h *header) contiguous(at uint64, size int64) {
	h.message(msgFill, []byte{3, fillLate})
	m := binary.LittleEndian.AppendUint64([]byte{3, 1}, at) // layout message of version 3, class 1
	h.message(msgLayout, binary.LittleEndian.AppendUint64(m, uint64(size)))
}

// chunked appends the messages of a dataset in chunks, which the B-tree at address tree lists, and
// of the filters of its chunks.
func (h *header) chunked(o *Object, tree uint64) {
	h.message(msgFill, []byte{3, fillIncremental})
	m := []byte{3, 2, byte(len(o.Dims) + 1)} // layout message of version 3, class 2
	m = binary.LittleEndian.AppendUint64(m, tree)
	for _, n := range o.chunkDims() {
		m = binary.LittleEndian.AppendUint32(m, uint32(n))
	}
	h.message(msgLayout, m)
	filters := o.Chunked.Filters()
	m = []byte{2, byte(len(filters))}
	for _, f := range filters {
		m = binary.LittleEndian.AppendUint16(m, f.ID)
		m = binary.LittleEndian.AppendUint16(m, 1) // it is optional
		m = binary.LittleEndian.AppendUint16(m, uint16(len(f.Params)))
		for _, p := range f.Params {
			m = binary.LittleEndian.AppendUint32(m, p)
		}
	}
	h.message(msgFilters, m)
}

// chunkDims returns the shape of a chunk in the form of the layout message, whose last axis is
// the bytes of an element.
func (o *Object) chunkDims() []int64 {
	dims := append([]int64{int64(o.Chunked.Records)}, o.Dims[1:]...)
	return append(dims, int64(o.Element.Size()))
}

// attributes appends a message for each attribute. It also says that no attributes are in a heap:
// libhdf5 then counts the messages.
func (h *header) attributes(list []Attribute) {
	if len(list) == 0 {
		return
	}
	info := binary.LittleEndian.AppendUint64([]byte{0, 0}, nowhere) // no heap of attributes: libhdf5 counts the messages
	h.message(msgAttrInfo, binary.LittleEndian.AppendUint64(info, nowhere))
	for i := range list {
		a := &list[i]
		t, err := a.Element.message()
		if err == nil && (len(a.Data) == 0 || len(a.Data) != max(1, a.Count)*a.Element.Size()) {
			err = fmt.Errorf("%d bytes for %d elements of %d", len(a.Data), a.Count, a.Element.Size())
		}
		if err != nil {
			h.err = fmt.Errorf("attribute %s: %w", a.Name, err)
			return
		}
		var dims []int64
		if a.Count > 0 {
			dims = []int64{int64(a.Count)}
		}
		space := dataspace(dims)
		m := []byte{3, 0}
		for _, n := range []int{len(a.Name) + 1, len(t), len(space)} {
			m = binary.LittleEndian.AppendUint16(m, uint16(n))
		}
		m = append(m, 1) // the name is UTF-8
		m = append(append(m, a.Name...), 0)
		h.message(msgAttribute, append(append(append(m, t...), space...), a.Data...))
	}
}

// link appends the message that makes the object at that address a member of the group.
func (h *header) link(name string, at int64) {
	m := []byte{1, 1 | 1<<4, 1} // version 1; the name has 2 bytes of length; it is UTF-8
	m = binary.LittleEndian.AppendUint16(m, uint16(len(name)))
	h.message(msgLink, binary.LittleEndian.AppendUint64(append(m, name...), uint64(at)))
}
