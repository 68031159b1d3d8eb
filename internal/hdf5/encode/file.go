package encode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// HeadSize is the size of a file's head, the superblock of version 2, in bytes.
const HeadSize = 48

// MaxFiles is how many pieces an Object's Files can have: each takes 24 bytes of a header message.
const MaxFiles = (maxMessage - 16) / 24

// File returns the metadata of an HDF5 file that has the objects, and whose root group has the
// attributes root. body is the file's last part and begins at byte at; head is its first HeadSize
// bytes. A caller that writes head last, after a sync of all else, has a file that is complete or
// is not an HDF5 file, whenever it crashes.
//
// The same arguments give the same bytes. libhdf5 reads them since version 1.8: the superblock and
// object headers are of version 2, links are compact, B-trees of chunks are of version 1 (HDF5 File
// Format Specification 3.0).
func File(at int64, objects []Object, root []Attribute) (head, body []byte, err error) {
	tree := &node{attributes: root}
	for i := range objects {
		if err := tree.add(strings.Split(strings.TrimPrefix(objects[i].Path, "/"), "/"), &objects[i]); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", objects[i].Path, err)
		}
	}
	w := &writer{base: at}
	top, err := w.node(tree)
	if err != nil {
		return nil, nil, err
	}
	// Superblock version 2, with addresses and lengths of 8 bytes.
	head = append([]byte("\x89HDF\r\n\x1a\n"), 2, 8, 8, 0)
	for _, n := range []uint64{0, nowhere, uint64(at) + uint64(len(w.b)), uint64(top)} { // base, extension, end, root group
		head = binary.LittleEndian.AppendUint64(head, n)
	}
	return binary.LittleEndian.AppendUint32(head, meta.Checksum(head)), w.b, nil
}

// node is a dataset or a group, with the place that it has in the tree of paths.
type node struct {
	name       string
	object     *Object // nil: a group
	kids       []*node
	attributes []Attribute // of a group
}

// add puts object o at a path below n, and makes the groups in between.
func (n *node) add(path []string, o *Object) error {
	if n.object != nil || path[0] == "" {
		return errors.New("not a path below a group")
	}
	var kid *node
	for _, k := range n.kids {
		if k.name == path[0] {
			kid = k
		}
	}
	if len(path) == 1 {
		if kid != nil {
			return errors.New("there are two objects of this name")
		}
		n.kids = append(n.kids, &node{name: path[0], object: o})
		return nil
	}
	if kid == nil {
		kid = &node{name: path[0]}
		n.kids = append(n.kids, kid)
	}
	return kid.add(path[1:], o)
}

// writer collects the bytes of a file from byte base on. An object is written after the objects
// that it refers to, as it must have their addresses.
type writer struct {
	base int64
	b    []byte
}

// place pads to a multiple of 8 and returns where in the file the next object goes.
func (w *writer) place() int64 {
	for (w.base+int64(len(w.b)))%8 > 0 {
		w.b = append(w.b, 0)
	}
	return w.base + int64(len(w.b))
}

// node writes the object header of a dataset, or of a group after all of its members, and returns
// its address.
func (w *writer) node(n *node) (at int64, err error) {
	if n.object != nil {
		if at, err = w.dataset(n.object); err != nil {
			err = fmt.Errorf("%s: %w", n.object.Path, err)
		}
		return at, err
	}
	h := header{}
	info := binary.LittleEndian.AppendUint64([]byte{0, 0}, nowhere) // no heap for links: they are messages of the header
	h.message(msgLinkInfo, binary.LittleEndian.AppendUint64(info, nowhere))
	h.message(msgGroupInfo, []byte{0, 0})
	for _, k := range n.kids {
		at, err := w.node(k)
		if err != nil {
			return 0, err
		}
		h.link(k.name, at)
	}
	h.attributes(n.attributes)
	return w.object(&h)
}

// dataset writes a dataset's object header and what belongs to it in this part of the file: its
// elements if they are in Data, its B-tree, or the names of its files. It returns the header's
// address.
func (w *writer) dataset(o *Object) (at int64, err error) {
	size, err := o.Bytes()
	if err != nil {
		return 0, err
	}
	h := header{}
	h.array(o)
	switch {
	case o.Chunked != nil && o.Chunked.Tree > 0:
		h.chunked(o, uint64(o.Chunked.Tree))
	case o.Chunked != nil:
		tree, err := w.chunkTree(o)
		if err != nil {
			return 0, err
		}
		h.chunked(o, tree)
	case len(o.Files) > 0:
		h.message(msgExternal, w.external(o.Files))
		h.contiguous(nowhere, size)
	case len(o.Data) > 0:
		if int64(len(o.Data)) != size {
			return 0, fmt.Errorf("%d bytes for a dataset of %d", len(o.Data), size)
		}
		place := w.place()
		w.b = append(w.b, o.Data...)
		h.contiguous(uint64(place), size)
	case o.At > 0:
		h.contiguous(uint64(o.At), size)
	default:
		h.contiguous(nowhere, size)
	}
	h.attributes(o.Attributes)
	return w.object(&h)
}

// object writes an object header of version 2 and its checksum (IV.A.1.b of the specification), and
// returns its address.
func (w *writer) object(h *header) (int64, error) {
	if h.err != nil {
		return 0, h.err
	}
	at := w.place()
	start := len(w.b)
	w.b = append(w.b, "OHDR\x02\x02"...) // version 2; the size of the messages takes 4 bytes
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(h.messages)))
	w.b = append(w.b, h.messages...)
	w.b = binary.LittleEndian.AppendUint32(w.b, meta.Checksum(w.b[start:]))
	return at, nil
}

// external writes the names of other files to a local heap, and returns the message that says which
// bytes of these files belong to the dataset (IV.A.2.h).
func (w *writer) external(pieces []Piece) []byte {
	heap := make([]byte, 8) // names are addressed by their offset; at 0 is the empty one, as libhdf5 has it
	m := []byte{1, 0, 0, 0}
	m = binary.LittleEndian.AppendUint16(m, uint16(len(pieces)))
	m = binary.LittleEndian.AppendUint16(m, uint16(len(pieces)))
	m = append(m, make([]byte, 8)...) // the heap's address, which is known at the end
	for _, p := range pieces {
		m = binary.LittleEndian.AppendUint64(m, uint64(len(heap)))
		m = binary.LittleEndian.AppendUint64(m, uint64(p.Offset))
		m = binary.LittleEndian.AppendUint64(m, uint64(p.Size))
		heap = append(append(heap, p.Name...), 0)
		for len(heap)%8 > 0 {
			heap = append(heap, 0)
		}
	}
	binary.LittleEndian.PutUint64(m[8:], uint64(w.localHeap(heap)))
	return m
}

// localHeap writes a local heap (III.D) that holds data and has no room for more, and returns its
// address.
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
