// Package rawcache keeps datasets that were built from raw samples in a folder of this user alone. Their names contain
// a fingerprint of the source. Later states of a source are generations of its dataset if most records stayed.
package rawcache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// Ends of names next to a dataset: the one that is made, and what is known of it.
const (
	building = ".new"
	about    = ".source.json"
	used     = ".used"     // locked by those who have the dataset open
	fetched  = ".objects"  // parts of objects of a bucket, until the dataset is complete
	states   = ".states"   // a folder of the states of the source
	changing = ".changing" // locked by the process that makes a generation
)

// ends lists the suffixes of all files that an entry may have in the folder. A suffix that ends with another one comes
// first, so that the longest match wins.
var ends = []string{about, building + ".building.lock", building + ".building", building + ".skipped.jsonl", building,
	".building.lock", ".building", fetched, states, changing, used}

// Entry is the dataset of a source in the cache.
type Entry struct {
	Name   string    `json:"name"`
	Path   string    `json:"path"`   // of the dataset
	Source string    `json:"source"` // the path or URL of the source
	Used   time.Time `json:"used"`
	Bytes  int64     `json:"bytes"`
	Ready  bool      `json:"ready"` // the dataset is complete
	Pinned bool      `json:"pinned"`

	Corrupt bool `json:"corrupt,omitempty"` // the dataset was complete, and cannot be opened

	// Transforms made its pixels; nil of image files as they are.
	Transforms json.RawMessage `json:"transforms,omitempty"`

	print      *raw.Fingerprint // of the source; nil in a list
	records    int64            // of the source
	generation int              // of the dataset, which has the state of the source
	first      bool             // the dataset was built from that state
}

// Find returns the entry of a source as it is now, complete or not.
func Find(ctx context.Context, dir string, src *raw.Source) (*Entry, error) {
	if err := checkOutside(dir, src); err != nil {
		return nil, err
	}
	folder, err := Folder(dir)
	if err != nil {
		return nil, err
	}
	print, err := src.Fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	path := src.Name()
	if !remote.IsURL(path) {
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
	}
	// Names that begin with a dot are of files beside entries.
	name := strings.ReplaceAll(strings.TrimLeft(src.Info().Name, "."), about+".", "-") + "-" + print.Digest
	e := &Entry{Name: name, Path: filepath.Join(folder, name), Source: path, print: print, records: src.Samples(),
		Transforms: src.Transforms()}
	e.find()
	return e, nil
}

// find looks for the dataset that has the state of the source: the one of its name, or a generation of another one.
func (e *Entry) find() {
	if _, err := os.Stat(e.Path); err == nil {
		e.Ready, e.first, e.generation = true, true, 1
		return
	}
	folder, digest := filepath.Dir(e.Path), e.print.Digest
	found, err := filepath.Glob(filepath.Join(escape(folder), "*"+states, digest+placesEnd))
	if err != nil || len(found) == 0 {
		return
	}
	other := Entry{Path: strings.TrimSuffix(filepath.Dir(found[0]), states)}
	if _, err := os.Stat(other.Path); err != nil { // a run was killed just before its dataset got its name
		return
	}
	if s, err := other.shelf().get(digest); err == nil {
		e.Name, e.Path, e.Ready, e.generation = filepath.Base(other.Path), other.Path, true, s.generation
		e.first = strings.HasSuffix(e.Name, "-"+digest) // of a source that was renamed
	}
}

// Dataset returns the path of the dataset in the state of the source; the entry must be ready. If the source has
// changed since the dataset was made, the path is the view of the new state; a dataset that has since been appended to
// is named at its generation.
func (e *Entry) Dataset() string {
	if !e.first {
		return filepath.Join(e.shelf().path(), e.print.Digest+viewEnd)
	}
	if m, err := store.ReadManifest(e.Path); err == nil && m.Generation > e.generation {
		return fmt.Sprintf("%s@%d", e.Path, e.generation)
	}
	return e.Path
}

// Building is where the dataset is made.
func (e *Entry) Building() string { return e.Path + building }

// Keep has what is fetched of a source in a bucket stored next to the dataset, where all processes that read or prepare
// it find it. Close the folder after the source.
func (e *Entry) Keep(src *raw.Source) (io.Closer, error) {
	if !remote.IsURL(e.Source) {
		return io.NopCloser(nil), nil
	}
	parent, name, err := private.Parent(e.Path + fetched)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	folder, err := private.Make(parent, name)
	if err != nil {
		return nil, err
	}
	src.Keep(folder)
	return folder, nil
}

// Publish gives the dataset that was built from a source its name, if the source still has the name's fingerprint.
// Another process may have done so.
func (e *Entry) Publish(ctx context.Context, src *raw.Source) error {
	now, err := fingerprintOf(ctx, src)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(e.Name, "-"+now.Digest) {
		err := fmt.Errorf("%s: files were changed while it was read", e.Source)
		return errors.Join(err, private.RemoveOwn(e.Building()))
	}
	if now.Keys != nil {
		if err := e.shelf().putFirst(now); err != nil {
			return err
		}
	}
	if err := e.note(); err != nil {
		return err
	}
	err = os.Rename(e.Building(), e.Path)
	if _, there := os.Stat(e.Path); err != nil && there == nil {
		err = private.RemoveOwn(e.Building())
	}
	e.find()
	return errors.Join(err, private.RemoveOwn(e.Path+fetched))
}

// known is the file beside a dataset that says where it came from. The file's modification time is the last use.
type known struct {
	Source string `json:"source"`
	Pinned bool   `json:"pinned,omitempty"`

	Transforms json.RawMessage `json:"transforms,omitempty"`
}

func readKnown(path string) (k known, used time.Time) {
	text, err := os.ReadFile(path + about)
	if err != nil || json.Unmarshal(text, &k) != nil {
		return known{}, used
	}
	if info, err := os.Stat(path + about); err == nil {
		used = info.ModTime()
	}
	return k, used
}

// note writes which source the dataset is of, and that it is used now. A file that says so already is not replaced: after
// a crash of the system the new file might be empty, and nothing would say which source the dataset is of.
func (e *Entry) note() error {
	k, _ := readKnown(e.Path)
	if k.Source != "" && k.Source == e.Source && bytes.Equal(k.Transforms, e.Transforms) {
		now := time.Now()
		return os.Chtimes(e.Path+about, now, now)
	}
	return e.write(known{e.Source, k.Pinned, e.Transforms})
}

func (e *Entry) write(k known) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	folder, name, err := private.Parent(e.Path + about)
	if err != nil {
		return err
	}
	defer folder.Close()
	return private.Replace(folder, name, 0o600, text)
}

// Pin keeps a dataset from being removed to make room for others, or as its source changed; with Unpin it may be.
func (e *Entry) Pin() error { return e.write(known{e.Source, true, e.Transforms}) }

// Unpin undoes Pin.
func (e *Entry) Unpin() error { return e.write(known{e.Source, false, e.Transforms}) }

// Open opens the generation of the dataset that has the state of the source, with the fields that are named, or all.
// Record i of the source is record places[i] there; nil means i. Close held after the dataset: until then, it is not
// removed to make room.
func (e *Entry) Open(fields []string, options ...mmapds.Option) (ds *mmapds.Dataset, places []int64, held io.Closer,
	err error) {
	f, err := e.hold()
	if err != nil {
		return nil, nil, nil, err
	}
	options = append(options, mmapds.WithFields(fields...), mmapds.WithGeneration(e.generation))
	ds, err = mmapds.Open(e.Path, options...)
	if err != nil {
		return nil, nil, nil, errors.Join(err, f.Close())
	}
	if !e.first {
		s, err := e.shelf().get(e.print.Digest)
		if err != nil {
			return nil, nil, nil, errors.Join(err, ds.Close(), f.Close())
		}
		if len(s.places) != ds.Len() || !s.isOrder() { // records at the end may be of an earlier state
			places = s.places
		}
	}
	if err := e.note(); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, nil, nil, errors.Join(err, ds.Close(), f.Close())
	}
	return ds, places, f, nil
}

// hold marks the dataset as in use, until the file is closed.
func (e *Entry) hold() (*os.File, error) {
	folder, name, err := private.Parent(e.Path + used)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	f, err := private.OpenLock(folder, name)
	if err != nil {
		return nil, err
	}
	if err := lease.Lock(f, lease.Together); err != nil && !errors.Is(err, lease.ErrNone) {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// List returns all entries, by name. It makes no folder.
func List(dir string) ([]Entry, error) {
	folder, err := existingFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return listIn(folder)
}

// alike reports whether two entries are of one source, and made by the same transforms.
func alike(a, b *Entry) bool { return a.Source == b.Source && bytes.Equal(a.Transforms, b.Transforms) }

func listIn(folder string) ([]Entry, error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		name := strings.TrimPrefix(f.Name(), ".")
		if before, _, cut := strings.Cut(name, about+"."); cut { // a file that a killed process was writing
			name = before
		}
		for _, end := range ends {
			name = strings.TrimSuffix(name, end)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	var list []Entry
	for _, name := range slices.Compact(names) {
		list = append(list, look(folder, name))
	}
	return list, nil
}

// look describes the entry of that name.
func look(folder, name string) Entry {
	e := Entry{Name: name, Path: filepath.Join(folder, name)}
	k, at := readKnown(e.Path)
	e.Source, e.Pinned, e.Used, e.Transforms = k.Source, k.Pinned, at, k.Transforms
	_, err := store.Open(e.Path, store.OpenOptions{})
	e.Ready = err == nil
	_, there := os.Lstat(e.Path)
	e.Corrupt = there == nil && !e.Ready
	for _, path := range e.paths() {
		_ = filepath.WalkDir(path, func(_ string, f fs.DirEntry, err error) error {
			if err == nil && !f.IsDir() {
				if info, err := f.Info(); err == nil {
					e.Bytes += info.Size()
				}
			}
			return nil // of what is removed just now
		})
	}
	return e
}

// paths are all that an entry may have in the folder.
func (e *Entry) paths() []string {
	folder, name := filepath.Split(e.Path)
	list := []string{e.Path}
	for _, end := range ends {
		list = append(list, e.Path+end, filepath.Join(folder, "."+name+end))
	}
	return list
}

// Remove removes an entry. Loaders that have its dataset open keep what they have mapped.
func (e *Entry) Remove() error {
	var errs []error
	for _, path := range e.paths() {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case info.IsDir():
			errs = append(errs, private.RemoveOwn(path))
		default:
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}
