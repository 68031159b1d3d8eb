package view

import (
	"encoding/binary"
	"math"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/store"
)

// Types of messages in an object header.
const (
	msgDataspace = 0x01
	msgLinkInfo  = 0x02
	msgDatatype  = 0x03
	msgFill      = 0x05
	msgLink      = 0x06
	msgExternal  = 0x07
	msgLayout    = 0x08
	msgGroupInfo = 0x0A
	msgAttribute = 0x0C
)

const (
	superblockSize = 48
	nowhere        = math.MaxUint64 // an address that leads nowhere

	maxMessage = 1<<16 - 1
	maxPieces  = (maxMessage - 16) / 24
)

// piece is where some bytes of a dataset lie.
type piece struct {
	name         string
	offset, size int64
}

// writer appends the objects of a file. An object is written after those that it names.
type writer struct{ b []byte }

func newWriter() *writer { return &writer{b: make([]byte, superblockSize)} }

// place returns where the next object goes.
func (w *writer) place() int64 {
	for len(w.b)%8 > 0 {
		w.b = append(w.b, 0)
	}
	return int64(len(w.b))
}

// external writes a dataset of so many bytes that lie in other files.
func (w *writer) external(typ []byte, dims []int64, size int64, pieces []piece, attributes []store.Attribute) (at int64, err error) {
	h := header{}
	h.array(typ, dims)
	if len(pieces) > 0 {
		h.message(msgExternal, w.externalList(pieces))
	}
	h.layout(nowhere, size)
	if err := h.attributes(attributes); err != nil {
		return 0, err
	}
	return w.object(&h), nil
}

// externalList writes the names of files into a local heap, and returns the message.
func (w *writer) externalList(pieces []piece) []byte {
	heap := make([]byte, 8) // the empty name
	m := []byte{1, 0, 0, 0}
	m = binary.LittleEndian.AppendUint16(m, uint16(len(pieces)))
	m = binary.LittleEndian.AppendUint16(m, uint16(len(pieces)))
	m = append(m, make([]byte, 8)...) // address of the heap
	for _, p := range pieces {
		m = binary.LittleEndian.AppendUint64(m, uint64(len(heap)))
		m = binary.LittleEndian.AppendUint64(m, uint64(p.offset))
		m = binary.LittleEndian.AppendUint64(m, uint64(p.size))
		heap = append(append(heap, p.name...), 0)
		for len(heap)%8 > 0 {
			heap = append(heap, 0)
		}
	}
	binary.LittleEndian.PutUint64(m[8:], uint64(w.localHeap(heap)))
	return m
}

func (w *writer) localHeap(data []byte) int64 {
	const noFree = 1 // head of the list of free blocks, if there are none
	at := w.place()
	w.b = append(w.b, "HEAP\x00\x00\x00\x00"...)
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(len(data)))
	w.b = binary.LittleEndian.AppendUint64(w.b, noFree)
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(at+32))
	w.b = append(w.b, data...)
	return at
}

// data writes a dataset whose elements are in this file.
func (w *writer) data(typ []byte, dims []int64, elements []byte) int64 {
	at := w.place()
	w.b = append(w.b, elements...)
	h := header{}
	h.array(typ, dims)
	h.layout(uint64(at), int64(len(elements)))
	return w.object(&h)
}

// group is links to objects, in order.
type group struct{ links []byte }

func (g *group) link(name string, at int64) {
	m := []byte{1, 1 | 1<<4, 1, 0, 0} // 2 bytes of length; UTF-8
	binary.LittleEndian.PutUint16(m[3:], uint16(len(name)))
	m = binary.LittleEndian.AppendUint64(append(m, name...), uint64(at))
	g.links = appendMessage(g.links, msgLink, m)
}

func (w *writer) group(g *group, attributes []store.Attribute) (at int64, err error) {
	h := header{}
	info := binary.LittleEndian.AppendUint64([]byte{0, 0}, nowhere) // no heap of links ...
	h.message(msgLinkInfo, binary.LittleEndian.AppendUint64(info, nowhere))
	h.message(msgGroupInfo, []byte{0, 0})
	h.messages = append(h.messages, g.links...)
	if err := h.attributes(attributes); err != nil {
		return 0, err
	}
	return w.object(&h), nil
}

// object writes an object header.
func (w *writer) object(h *header) int64 {
	at := w.place()
	w.b = append(w.b, "OHDR\x02\x02"...) // version 2; 4 bytes of size
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(h.messages)))
	w.b = append(w.b, h.messages...)
	w.b = binary.LittleEndian.AppendUint32(w.b, meta.Checksum(w.b[at:]))
	return at
}

// finish writes the root group and the superblock, and returns the file.
func (w *writer) finish(root *group, attributes []store.Attribute) ([]byte, error) {
	at, err := w.group(root, attributes)
	if err != nil {
		return nil, err
	}
	b := append([]byte("\x89HDF\r\n\x1a\n"), 2, 8, 8, 0)
	for _, n := range []uint64{0, nowhere, uint64(len(w.b)), uint64(at)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, meta.Checksum(b))
	copy(w.b, b)
	return w.b, nil
}
