package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// listing has the entries of one folder, each part sorted by name.
type listing struct {
	files   []entry // samples
	folders []string
	ignored []string // neither

	first   string // link, by name, to a folder that is outside of the source
	refused error  // for that
}

// entry is a file that is a sample. Millions are held in memory.
type entry struct {
	name string
	mode fs.FileMode // 0 of a regular file, and of a link that leads out of the source
}

// list reads the folder rel of the source.
func (s *Folder) list(rel string) (listing, error) {
	var l listing
	dir := filepath.Join(s.dir, rel)
	err := s.root.EachEntry(dir, func(entries []fs.DirEntry) error {
		for _, e := range entries {
			if s.ctx.Err() != nil {
				return context.Cause(s.ctx)
			}
			if !source.IsHidden(e.Name()) {
				s.classify(&l, dir, e)
			}
		}
		return nil
	})
	if s.ctx.Err() != nil {
		return l, context.Cause(s.ctx)
	}
	if err != nil {
		return l, inFolder(rel, err)
	}
	l.sort()
	return l, l.refused
}

func (l *listing) sort() {
	slices.SortFunc(l.files, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	slices.Sort(l.folders)
	slices.Sort(l.ignored)
}

// inFolder says in which folder of the source an error came up, unless it is the source.
func inFolder(rel string, err error) error {
	if err = source.WithoutPath(err); rel == "" {
		return err
	}
	return fmt.Errorf("folder %q: %w", filepath.ToSlash(rel), err)
}

// classify puts e where it belongs. Only regular files are ever opened: a named pipe would
// block the one who does.
func (s *Folder) classify(l *listing, dir string, e fs.DirEntry) {
	name, mode := e.Name(), e.Type()
	if mode.IsRegular() && source.IsImageName(name) {
		l.files = append(l.files, entry{name: name})
		return
	}
	path := filepath.Join(dir, name)
	if mode&fs.ModeSymlink != 0 {
		info, err := s.root.Stat(path)
		if errors.Is(err, vfs.ErrOutside) {
			l.outside(path, err)
			return
		}
		if err == nil {
			mode = info.Mode().Type()
		}
	}
	switch {
	case mode.IsDir():
		l.folders = append(l.folders, name)
	case mode.IsRegular() && (source.IsImageName(name) || s.isSample(s.heads.of(s.root, path))):
		l.files = append(l.files, entry{name: name})
	case !mode.IsRegular() && source.IsImageName(name):
		l.files = append(l.files, entry{name: name, mode: mode})
	default:
		l.ignored = append(l.ignored, name)
	}
}

// isSample reports whether a file whose name says nothing is a sample.
func (s *Folder) isSample(head []byte) bool {
	array := isArray(head)
	s.hasArray = s.hasArray || array
	return s.isImage(head) || s.arrays && array
}

// outside puts a link that leads out of the source where it belongs. It is not opened.
func (l *listing) outside(path string, err error) {
	name := filepath.Base(path)
	switch info, missing := vfs.Stat(path); {
	case missing == nil && info.IsDir():
		if l.refused == nil || path < l.first {
			l.first, l.refused = path, source.WithoutPath(err)
		}
	case source.IsImageName(name):
		l.files = append(l.files, entry{name: name}) // its Data fails, and says why
	default:
		l.ignored = append(l.ignored, name)
	}
}

// found counts images.
func (s *Folder) found(n int) {
	s.info.Count += int64(n)
	if s.info.Count >= source.QuickScan {
		s.seen(s.info.Count - s.reported)
		s.reported = s.info.Count
	}
}

// walker finds the folders below a class folder, following links.
type walker struct {
	ctx    context.Context
	source *Folder
	above  []fs.FileInfo // the folders that the present one is in
	found  []string
}

// walk looks into the folder rel and all below it.
func (w *walker) walk(rel string) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	info, err := w.source.root.Stat(filepath.Join(w.source.dir, rel))
	if err != nil {
		return inFolder(rel, err)
	}
	for _, a := range w.above {
		if os.SameFile(a, info) {
			return fmt.Errorf("folder %q is a link to a folder that it is in; remove it", filepath.ToSlash(rel))
		}
	}
	l, err := w.source.list(rel)
	if err != nil {
		return err
	}
	w.source.ignore(rel, l)
	w.source.found(len(l.files))
	if len(l.files) > 0 {
		w.found = append(w.found, rel)
		if w.source.held != nil {
			w.source.held[rel] = l.files
		}
	}
	w.above = append(w.above, info)
	for _, name := range l.folders {
		if err := w.walk(filepath.Join(rel, name)); err != nil {
			return err
		}
	}
	w.above = w.above[:len(w.above)-1]
	return nil
}

// sorted returns the folders that hold samples, by path: as text, where "a/b-c" comes
// before "a/b/d", since torchvision sorts the paths that os.walk gives.
func (w *walker) sorted() []string {
	slices.Sort(w.found)
	return w.found
}
