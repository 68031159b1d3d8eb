package crash

import (
	"fmt"
	"io/fs"
	"slices"
)

// Log records a program's changes of a folder, step by step.
type Log struct {
	nodes []info
	base  int // steps that the folder was made by before the program ran
	steps []step
}

// info has the constant properties of a file or folder. Node 0 is the folder that is watched.
type info struct {
	folder bool
	mode   fs.FileMode // that it was made with
	path   string      // that it was made at
}

type kind int

const (
	names  kind = iota // entries of folders changed, all at once
	data               // bytes of a file were written, in one block
	size               // a file was cut, or made longer by zeros
	mode               // of a file
	synced             // a file or folder is durable
	mark               // the program printed a mark
)

// step is a change that is made as a whole, or a sync.
type step struct {
	kind  kind
	node  int // the file or folder
	names []name
	off   int64
	bytes []byte
	size  int64
	mode  fs.FileMode
	mark  string
}

// name is an entry of a folder from now on.
type name struct {
	folder int
	name   string
	node   int // gone: there is none now
}

const gone = -1

// Len returns how many steps there are.
func (l *Log) Len() int { return len(l.steps) - l.base }

// Describe says what step n was, counted from 0.
func (l *Log) Describe(n int) string {
	s := &l.steps[l.base+n]
	switch path := l.nodes[s.node].path; s.kind {
	case names:
		text := ""
		for _, n := range s.names {
			what := "+"
			if n.node == gone {
				what = "-"
			}
			text += fmt.Sprintf(" %s%s/%s", what, l.nodes[n.folder].path, n.name)
		}
		return "names:" + text
	case data:
		return fmt.Sprintf("%d bytes at %d of %s", len(s.bytes), s.off, path)
	case size:
		return fmt.Sprintf("size %d of %s", s.size, path)
	case mode:
		return fmt.Sprintf("mode %v of %s", s.mode, path)
	case synced:
		return "sync of " + path
	}
	return "mark " + s.mark
}

// Mark returns the last mark before step n; "" if there is none.
func (l *Log) Mark(n int) string {
	for i := l.base + n - 1; i >= l.base; i-- {
		if l.steps[i].kind == mark {
			return l.steps[i].mark
		}
	}
	return ""
}

// Killed returns the content if the program is killed before step n; for n = Len, when it has ended.
func (l *Log) Killed(n int) *Tree {
	return l.replay(l.base+n, func(int) bool { return true })
}

// Cut returns the files that can be there if the power is cut before step n. Names that are
// not durable are kept up to a step, as part says (0: none, 1: all), and of the other changes those
// of files for which keep returns true.
func (l *Log) Cut(n int, part float64, keep func(file int) bool) *Tree {
	end := l.base + n
	durable := l.durable(end)
	least := l.durableNames(end)
	upTo := least + int(part*float64(end-least)+0.5)
	return l.replay(end, func(i int) bool {
		if l.steps[i].kind == names {
			return i < upTo
		}
		return i < durable[l.steps[i].node] || keep(l.steps[i].node)
	})
}

// unsynced returns the files that have changes before step n which are not durable.
func (l *Log) unsynced(n int) (files []int) {
	end := l.base + n
	durable := l.durable(end)
	for i, s := range l.steps[:end] {
		if (s.kind == data || s.kind == size) && i >= durable[s.node] && !slices.Contains(files, s.node) {
			files = append(files, s.node)
		}
	}
	return files
}

// durable returns for each file how many of the first end steps are durable there.
func (l *Log) durable(end int) map[int]int {
	upTo := make(map[int]int)
	for id := range l.nodes {
		upTo[id] = l.base
	}
	for i, s := range l.steps[:end] {
		if s.kind == synced && !l.nodes[s.node].folder {
			upTo[s.node] = i
		}
	}
	return upTo
}

// durableNames returns up to which of the first end steps names are durable.
func (l *Log) durableNames(end int) int {
	upTo := l.base
	last := make(map[int]int) // step that changed names of a folder
	for i, s := range l.steps[:end] {
		for _, n := range s.names {
			last[n.folder] = i + 1
		}
		if s.kind == synced && l.nodes[s.node].folder {
			upTo = max(upTo, last[s.node])
		}
	}
	return upTo
}

// replay makes the tree of those of the first end steps that are kept.
func (l *Log) replay(end int, keep func(i int) bool) *Tree {
	t := newTree(l.nodes)
	for i := range l.steps[:end] {
		if keep(i) {
			t.apply(&l.steps[i])
		}
	}
	return t
}
