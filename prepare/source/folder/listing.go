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

// listing is the content of one folder, each list sorted by name.
type listing struct {
	files   []entry  // the samples
	folders []string // the subfolders
	ignored []string // all other files

	first   string // path of the first link to a folder outside of the source
	refused error  // error of that link
}

// entry is a file that is a sample. It is small, as millions may be in memory.
type entry struct {
	name string
	mode fs.FileMode // type of a file that is not regular, such as a pipe, whose Data is an error; 0 otherwise
}

// list lists the folder rel of the source. EachEntry returns entries in the order of the file system, a part at a
// time, so the lists are sorted here.
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

// inFolder adds the folder of the source to an error, unless it is the source itself.
func inFolder(rel string, err error) error {
	if err = source.WithoutPath(err); rel == "" {
		return err
	}
	return fmt.Errorf("folder %q: %w", filepath.ToSlash(rel), err)
}

// classify adds an entry to a listing. Only regular files are opened: opening a named pipe would wait for a writer.
func (s *Folder) classify(l *listing, dir string, e fs.DirEntry) {
	name, mode := e.Name(), e.Type()
	// Nearly all entries take this way, without a system call for each.
	if mode.IsRegular() && source.IsImageName(name) {
		l.files = append(l.files, entry{name: name})
		return
	}
	path := filepath.Join(dir, name)
	// ReadDir reports the type of the link itself, so a link costs a look at its target.
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

// isSample reports whether a file with these first bytes is a sample.
func (s *Folder) isSample(head []byte) bool {
	array := isArray(head)
	s.hasArray = s.hasArray || array
	return s.isImage(head) || s.arrays && array
}

// outside adds a link that leads out of the source, which is not opened. A link to a folder is an error of the
// source, as a whole class could be behind it; the link of an image becomes a sample that fails.
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

// found adds n images to the count, and reports progress when listing takes long.
func (s *Folder) found(n int) {
	s.info.Count += int64(n)
	if s.info.Count >= source.QuickScan {
		s.seen(s.info.Count - s.reported)
		s.reported = s.info.Count
	}
}

// walker finds the folders with samples at and below a class folder. It follows links.
type walker struct {
	ctx    context.Context
	source *Folder
	above  []fs.FileInfo // the folders that enclose the current one
	found  []string      // folders with samples
}

// walk lists the folder rel and all folders below it. A folder that is one of its own ancestors, which links make
// possible, is an error instead of an endless walk.
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
	// above is a path, not a set of all folders seen: two links to one folder are two folders with the same images.
	w.above = append(w.above, info)
	for _, name := range l.folders {
		if err := w.walk(filepath.Join(rel, name)); err != nil {
			return err
		}
	}
	w.above = w.above[:len(w.above)-1]
	return nil
}

// sorted returns the folders with samples, sorted by path as text, where "a/b-c" comes before "a/b/d": torchvision
// sorts the paths of os.walk in this way.
func (w *walker) sorted() []string {
	slices.Sort(w.found)
	return w.found
}
