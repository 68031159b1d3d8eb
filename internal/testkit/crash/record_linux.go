package crash

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// block is the largest write that is atomic, in bytes.
const block = 4096

// MarkPrefix is before the names of files that are not recorded: making one
// in the folder itself marks the moment, with the rest of the name.
const MarkPrefix = "mark."

// Record runs the program args with the environment env until it ends, and returns what it did
// below folder. A program that fails is an error with what it said. ErrUntraceable says that
// processes cannot be traced here.
func Record(folder string, env []string, args ...string) (*Log, error) {
	r := &recorder{folder: folder, log: &Log{}, ids: make(map[uint64]int), now: &Tree{}, marks: make(map[string]bool)}
	if err := r.look(); err != nil {
		return nil, err
	}
	r.log.base = len(r.log.steps)
	t := &tracer{after: r.look, synced: r.sync}
	if err := t.run(env, args); err != nil {
		return nil, err
	}
	n := len(r.log.steps)
	if err := r.look(); err != nil {
		return nil, err
	}
	if n != len(r.log.steps) {
		return nil, fmt.Errorf("%s: files were changed by system calls that are not watched", r.log.Describe(n-r.log.base))
	}
	return r.log, nil
}

// Paused runs a program as Record does. After n of its system calls that can change files it has to wait while
// meanwhile runs. Paused returns how many such calls it makes.
func Paused(n int, meanwhile func() error, env []string, args ...string) (calls int, err error) {
	t := &tracer{synced: func(string) error { return nil }}
	t.after = func() error {
		if calls++; calls == n {
			return meanwhile()
		}
		return nil
	}
	err = t.run(env, args)
	return calls, err
}

// recorder compares the folder with what it was.
type recorder struct {
	folder string
	log    *Log
	ids    map[uint64]int // nodes that are in the folder, by number of their inode
	now    *Tree
	marks  map[string]bool
	read   bytes.Buffer // a file at a time
}

// found is a file or folder at a look.
type found struct {
	id   int
	path string
}

// look notes what has changed.
func (r *recorder) look() error {
	info, err := os.Lstat(r.folder)
	if err != nil {
		return err
	}
	there := make(map[uint64]int)
	r.id(info, "", there)
	list := []found{{0, r.folder}}
	var changed []name
	for at := 0; at < len(list); at++ {
		if r.log.nodes[list[at].id].folder {
			if err := r.entries(list[at], there, &list, &changed); err != nil {
				return err
			}
		}
	}
	if len(changed) > 0 {
		r.do(step{kind: names, names: changed})
	}
	r.ids = there
	for _, f := range list {
		if err := r.contents(f); err != nil {
			return err
		}
	}
	return nil
}

// id returns the node of what info is about, which may be new.
func (r *recorder) id(info fs.FileInfo, path string, there map[uint64]int) int {
	inode := info.Sys().(*syscall.Stat_t).Ino
	id, known := there[inode]
	if !known {
		id, known = r.ids[inode]
	}
	if !known {
		made := nodeInfo(info, path)
		id = len(r.log.nodes)
		r.log.nodes = append(r.log.nodes, made)
		r.now.add(made)
	}
	there[inode] = id
	return id
}

func nodeInfo(f fs.FileInfo, path string) info { return info{f.IsDir(), f.Mode().Perm(), path} }

// entries compares the names in a folder, and adds what they are of to list.
func (r *recorder) entries(dir found, there map[uint64]int, list *[]found, changed *[]name) error {
	entries, err := os.ReadDir(dir.path)
	if err != nil {
		return err
	}
	old := r.now.nodes[dir.id].entries
	is := make(map[string]bool)
	for _, e := range entries {
		if text, ok := strings.CutPrefix(e.Name(), MarkPrefix); ok && dir.id == 0 {
			r.mark(text)
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		path := filepath.Join(dir.path, e.Name())
		id := r.id(info, strings.TrimPrefix(path, r.folder), there)
		is[e.Name()] = true
		if was, ok := old[e.Name()]; !ok || was != id {
			*changed = append(*changed, name{dir.id, e.Name(), id})
		}
		*list = append(*list, found{id, path})
	}
	for e := range old {
		if !is[e] {
			*changed = append(*changed, name{dir.id, e, gone})
		}
	}
	return nil
}

func (r *recorder) mark(text string) {
	if !r.marks[text] {
		r.marks[text] = true
		r.do(step{kind: mark, mark: text})
	}
}

// contents compares a file.
func (r *recorder) contents(f found) error {
	info, err := os.Lstat(f.path)
	if err != nil {
		return err
	}
	if is := info.Mode().Perm(); is != r.now.nodes[f.id].mode {
		r.do(step{kind: mode, node: f.id, mode: is})
	}
	if info.IsDir() {
		return nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	r.read.Reset()
	if _, err := r.read.ReadFrom(file); err != nil {
		return err
	}
	r.compare(f.id, r.read.Bytes())
	return nil
}

// compare notes what is new in a file, in blocks. Added bytes are written if they are
// not all zero.
func (r *recorder) compare(id int, is []byte) {
	was := r.now.nodes[id].data
	if bytes.Equal(is, was) {
		return
	}
	if len(is) < len(was) {
		r.do(step{kind: size, node: id, size: int64(len(is))})
	}
	for at := 0; at < len(is); at += block {
		end := min(at+block, len(is))
		if a, b := differ(r.now.nodes[id].data, is, at, end); a < b {
			r.do(step{kind: data, node: id, off: int64(a), bytes: bytes.Clone(is[a:b])})
		}
	}
	if len(is) > len(r.now.nodes[id].data) {
		r.do(step{kind: size, node: id, size: int64(len(is))})
	}
}

// differ returns the range of is[at:end] that is other than in was, which continues with zeros.
func differ(was, is []byte, at, end int) (a, b int) {
	old := func(i int) byte {
		if i < len(was) {
			return was[i]
		}
		return 0
	}
	for a = at; a < end && is[a] == old(a); a++ {
	}
	if a == end {
		return a, a
	}
	for b = end; b <= len(was) && is[b-1] == was[b-1]; b-- {
	}
	return a, b
}

// sync records that the file or folder at path is durable, if it is in the recorded folder.
func (r *recorder) sync(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("what was synced: %w", err)
	}
	if id, ok := r.ids[info.Sys().(*syscall.Stat_t).Ino]; ok {
		r.do(step{kind: synced, node: id})
	}
	return nil
}

func (r *recorder) do(s step) {
	r.log.steps = append(r.log.steps, s)
	r.now.apply(&s)
}
