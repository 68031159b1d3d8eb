package crash

import (
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Tree is a folder with all that is in it.
type Tree struct{ nodes []node }

type node struct {
	folder  bool
	mode    fs.FileMode
	entries map[string]int // of a folder
	data    []byte         // of a file
}

func newTree(nodes []info) *Tree {
	t := &Tree{}
	for _, n := range nodes {
		t.add(n)
	}
	return t
}

func (t *Tree) add(n info) {
	made := node{folder: n.folder, mode: n.mode}
	if n.folder {
		made.entries = make(map[string]int)
	}
	t.nodes = append(t.nodes, made)
}

func (t *Tree) apply(s *step) {
	n := &t.nodes[s.node]
	switch s.kind {
	case names:
		for _, e := range s.names {
			if e.node == gone {
				delete(t.nodes[e.folder].entries, e.name)
			} else {
				t.nodes[e.folder].entries[e.name] = e.node
			}
		}
	case data:
		n.resize(max(int64(len(n.data)), s.off+int64(len(s.bytes))))
		copy(n.data[s.off:], s.bytes)
	case size:
		n.resize(s.size)
	case mode:
		n.mode = s.mode
	}
}

func (n *node) resize(size int64) {
	if more := size - int64(len(n.data)); more > 0 {
		n.data = append(n.data, make([]byte, more)...)
	}
	n.data = n.data[:size]
}

// Write makes the tree below folder, which must not be there.
func (t *Tree) Write(folder string) error { return t.write(0, folder) }

func (t *Tree) write(id int, path string) error {
	n := &t.nodes[id]
	if !n.folder {
		if err := os.WriteFile(path, n.data, 0o600); err != nil {
			return err
		}
		return os.Chmod(path, n.mode.Perm())
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	for name, child := range n.entries {
		if err := t.write(child, filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// seed is of all sums of this process.
var seed = maphash.MakeSeed()

// sum distinguishes different trees, but for one pair in 2^64.
func (t *Tree) sum() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	t.hash(&h, 0)
	return h.Sum64()
}

func (t *Tree) hash(h *maphash.Hash, id int) {
	n := &t.nodes[id]
	maphash.WriteComparable(h, [3]int{len(n.data), int(n.mode.Perm()), len(n.entries)})
	h.Write(n.data)
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		h.WriteString(name)
		h.WriteByte(0)
		t.hash(h, n.entries[name])
	}
}
