package encode

import (
	"encoding/binary"
	"fmt"
)

// chunkKids is the most children that a node of a B-tree of chunks has: twice K. K is 32, libhdf5's
// default, as superblock 2 has no place for another value.
const chunkKids = 64

// branch is a child of a node: a chunk, or a node of the level below, whose rows begin at row. At
// is its address. In a node, Size and Mask are the size and mask of its first chunk.
type branch struct {
	row int64
	Stored
}

// chunkTree writes the B-tree that lists the chunks of a dataset, and returns its address (version
// 1: HDF5 File Format Specification, III.A.1). All chunks are known, so the tree is built from the
// leaves up. All nodes of a level except the last are full, and they lie one after the other.
func (w *writer) chunkTree(o *Object) (uint64, error) {
	c := o.Chunked
	per := int64(c.Records)
	if want := (o.Dims[0] + per - 1) / per; int64(len(c.Stored)) != want {
		return 0, fmt.Errorf("%d chunks of %d rows for %d rows", len(c.Stored), per, o.Dims[0])
	}
	if len(c.Stored) == 0 {
		return nowhere, nil
	}
	kids := make([]branch, len(c.Stored))
	for i, s := range c.Stored {
		kids[i] = branch{int64(i) * per, s}
	}
	t := treeWriter{w: w, rank: len(o.Dims), end: int64(len(kids)) * per}
	for level := byte(0); ; level++ {
		kids = t.level(level, kids)
		if len(kids) == 1 {
			return uint64(kids[0].At), nil
		}
	}
}

// treeWriter writes the nodes of one chunk B-tree.
type treeWriter struct {
	w    *writer
	rank int   // dimensions of the dataset
	end  int64 // the row that follows the last chunk
}

// keySize returns the bytes of a key: size and mask of a chunk, and its coordinates, of which the
// last counts the bytes of an element.
func (t *treeWriter) keySize() int { return 8 + 8*(t.rank+1) }

// nodeSize returns the bytes of a node. All nodes have that size, full or not: 24 bytes of head,
// then keys and children in turn, with one key more than children.
func (t *treeWriter) nodeSize() int { return 24 + (chunkKids+1)*t.keySize() + chunkKids*8 }

// level writes the nodes above kids, which it links to their left and right neighbors, and returns
// them as the kids of the next level. Their addresses follow from their size, before they are
// written.
func (t *treeWriter) level(level byte, kids []branch) (nodes []branch) {
	first := t.w.place()
	size := int64(t.nodeSize())
	for i := 0; i < len(kids); i += chunkKids {
		own := kids[i:min(i+chunkKids, len(kids))]
		left, right := uint64(nowhere), uint64(nowhere)
		at := first + int64(len(nodes))*size
		if i > 0 {
			left = uint64(at - size)
		}
		next := t.end
		if i+chunkKids < len(kids) {
			right, next = uint64(at+size), kids[i+chunkKids].row
		}
		t.node(level, own, left, right, next)
		nodes = append(nodes, branch{own[0].row, Stored{At: at, Size: own[0].Size, Mask: own[0].Mask}})
	}
	return nodes
}

// node writes one node of kids. next is the first row after them, which the last key has.
func (t *treeWriter) node(level byte, kids []branch, left, right uint64, next int64) {
	start := len(t.w.b)
	b := append(t.w.b, 'T', 'R', 'E', 'E', 1, level)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(kids)))
	b = binary.LittleEndian.AppendUint64(b, left)
	b = binary.LittleEndian.AppendUint64(b, right)
	for _, k := range kids {
		b = t.key(b, k)
		b = binary.LittleEndian.AppendUint64(b, uint64(k.At))
	}
	b = t.key(b, branch{row: next})
	t.w.b = append(b, make([]byte, t.nodeSize()-(len(b)-start))...)
}

// key appends the key of a child: size and mask of its first chunk, and the coordinates of that
// chunk's first element. All but the row are 0, as chunks have whole rows.
func (t *treeWriter) key(b []byte, k branch) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(k.Size))
	b = binary.LittleEndian.AppendUint32(b, k.Mask)
	b = binary.LittleEndian.AppendUint64(b, uint64(k.row))
	return append(b, make([]byte, 8*t.rank)...)
}
