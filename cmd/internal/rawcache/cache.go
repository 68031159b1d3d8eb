// Package rawcache keeps datasets that were built from raw samples, in a folder that only this user
// may write to. Training from a folder of images then decodes or even opens each file once and not
// in every epoch.
//
//	Keep      makes a raw.Source read from its cached dataset, and has a missing dataset built
//	Find      looks up the dataset of a source
//	Entry     a dataset in the cache: open, pin, publish, remove
//	MakeRoom  removes the least recently used datasets
//
// A dataset's name is the source's name and a fingerprint of its files (names, sizes and times), so
// a lookup needs no database, and a changed file is noticed. If most records of a changed source
// stayed, its dataset gets a new generation in place of a new dataset: see states.go.
//
// Several processes share the folder without a server. A dataset is built under a temporary name
// and renamed when it is complete. A process that has a dataset open holds a shared lock on
// NAME.used; a process that adds a generation holds an exclusive lock on NAME.changing; removal
// takes all locks first. A lock ends with its process, so that a killed process blocks nothing.
package rawcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
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

// Suffixes of the names beside a dataset.
const (
	building = ".new"         // the dataset while it is built
	about    = ".source.json" // where the dataset came from: see known
	used     = ".used"        // locked, shared, by each process that has the dataset open
	fetched  = ".objects"     // parts of objects of a bucket, until the dataset is complete
	states   = ".states"      // a folder of the states of the source
	changing = ".changing"    // locked by the process that makes a generation
)

// ends lists the suffixes of all files that an entry may have in the folder. A suffix that ends with another suffix
// comes first, so that the longest match wins.
var ends = []string{about, building + ".building.lock", building + ".building", building + ".skipped.jsonl", building,
	".building.lock", ".building", fetched, states, changing, used}

// Entry is the dataset of a source in the cache.
type Entry struct {
	Name   string    `json:"name"`
	Path   string    `json:"path"` // of the dataset
	Used   time.Time `json:"used"`
	Bytes  int64     `json:"bytes"`
	Ready  bool      `json:"ready"` // the dataset is complete
	Pinned bool      `json:"pinned"`

	Corrupt bool `json:"corrupt,omitempty"` // the dataset was complete, and cannot be opened

	origin
	print      *raw.Fingerprint // of the source; nil in a list
	records    int64            // of the source
	generation int              // the generation of the dataset that has the source's present state
	first      bool             // the dataset was built from the present state: record i of the source is its record i
}

// origin describes the source from which a dataset was built. An earlier state of the same source has the same
// origin.
type origin struct {
	Source  string `json:"source"`            // the path or URL
	Records string `json:"records,omitempty"` // declaration of the records
	Fields  string `json:"fields,omitempty"`  // selection of the fields, in the notation of preprocess --fields; "" is all

	// Transforms made the stored pixels; nil if image files are stored unchanged.
	Transforms json.RawMessage `json:"transforms,omitempty"`
}

func (o origin) equals(other origin) bool { return reflect.DeepEqual(o, other) }

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
	e := &Entry{Name: name, Path: filepath.Join(folder, name), print: print, records: src.Samples(), origin: origin{
		Source: path, Records: src.Declared().Records, Fields: src.Declared().Columns, Transforms: src.Transforms()}}
	e.find()
	return e, nil
}

// find looks for the dataset that has the present state of the source: the dataset of the entry's
// name, or a generation of another dataset, which then gives the entry its name and path.
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

// Dataset returns the path of the dataset in the state of the source; the entry must be ready. If
// the source has changed since the dataset was built, this is the path of the view of the new
// state. If the dataset has generations of later states, the path names the generation.
func (e *Entry) Dataset() string {
	if !e.first {
		return filepath.Join(e.shelf().path(), e.print.Digest+viewEnd)
	}
	if m, err := store.ReadManifest(e.Path); err == nil && m.Generation > e.generation {
		return fmt.Sprintf("%s@%d", e.Path, e.generation)
	}
	return e.Path
}

// Building returns the path under which the dataset is built. Publish renames it.
func (e *Entry) Building() string { return e.Path + building }

// Keep makes src store the parts that it fetches from a bucket beside the dataset. All processes
// that read or prepare the source find them there, so that each byte is fetched once. Close the
// folder after the source.
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

// Publish renames the dataset that was built from src to its final name. Files may have changed
// while they were read, so Publish takes the fingerprint again; if it differs, the dataset is
// removed, since it is a mixture of two states. Another process may have published the same dataset
// first; then the dataset of this process is removed.
//
// The places and the known file are written before the rename: a dataset that has its name has
// them.
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

// known is the content of NAME.source.json, which says where a dataset came from. The modification
// time of the file is the dataset's last use.
type known struct {
	origin
	Pinned bool `json:"pinned,omitempty"`
}

// readKnown reads the file, and returns zero values if it does not exist or is damaged: then the
// dataset is listed without a source.
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

// note records the source of the dataset and that it is used now. A file that says so already only
// gets a new time: a new file might be empty after a crash of the system, and nothing would say
// which source the dataset belongs to.
func (e *Entry) note() error {
	k, _ := readKnown(e.Path)
	if k.Source != "" && k.equals(e.origin) {
		now := time.Now()
		return os.Chtimes(e.Path+about, now, now)
	}
	return e.write(known{e.origin, k.Pinned})
}

// write replaces the known file.
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

// Pin protects the dataset from removal, both to make room and after a change of its source.
func (e *Entry) Pin() error { return e.write(known{e.origin, true}) }

// Unpin undoes Pin.
func (e *Entry) Unpin() error { return e.write(known{e.origin, false}) }

// Open opens the generation of the dataset that has the state of the source, with the named fields,
// or all if fields is empty. Record i of the source is record places[i] of ds; nil places means i.
// The caller closes held after ds: until then no process removes the dataset.
//
// The lock of held is taken before the dataset is opened; taken afterwards, another process could
// remove the files in between.
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

// hold takes the shared lock that marks the dataset as in use, until the file is closed. On a file
// system without locks, the dataset is used without a lock.
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

// List returns all entries in the order of their names. It does not create the folder.
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

// listIn returns the entries of a folder. A name counts also if only files beside a dataset exist,
// as after a killed run, so that they can be listed and removed.
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

// look describes the entry with that name: its files are opened and its sizes are added up.
func look(folder, name string) Entry {
	e := Entry{Name: name, Path: filepath.Join(folder, name)}
	k, at := readKnown(e.Path)
	e.origin, e.Pinned, e.Used = k.origin, k.Pinned, at
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
			return nil // an error means that the file has just been removed
		})
	}
	return e
}

// paths returns every path that an entry may have in the folder.
func (e *Entry) paths() []string {
	folder, name := filepath.Split(e.Path)
	list := []string{e.Path}
	for _, end := range ends {
		list = append(list, e.Path+end, filepath.Join(folder, "."+name+end))
	}
	return list
}

// Remove removes an entry with all its files. Loaders that have the dataset open keep what they
// have mapped.
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
