package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
)

// Tag is a name of a generation, as the file of the tag stores it.
type Tag struct {
	Name       string `json:"-"`
	Generation int    `json:"generation"`
	ID         string `json:"id"` // ID in the generation's manifest
}

// Folder is the folder of a dataset, flat or Zarr, in which its generations are listed: a folder of the machine, or the
// objects of a bucket. Its errors do not name it. A Folder may also be an HDF5 file of the machine, which has one
// generation.
type Folder struct {
	FS   fs.FS  // nil for a file
	Name string // the path or URL, as commands take it
}

// FolderAt returns the Folder for a folder or file of the machine.
func FolderAt(path string) Folder {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return Folder{nil, path}
	}
	return Folder{vfs.Folder(path), path}
}

// Generations returns the numbers of the generations that the dataset at path keeps, in ascending order, the
// newest generation last.
func Generations(path string) ([]int, error) {
	if isURL(path) {
		return nil, fmt.Errorf("store: generations of %q: %w", path, notLocal())
	}
	numbers, err := FolderAt(path).Generations()
	if err != nil {
		return nil, fmt.Errorf("store: generations of %q: %w", path, err)
	}
	return numbers, nil
}

// Generations is like the function [Generations], for a dataset in any folder. A generation newer than the manifest in
// the folder is found by newest, so the newest number comes from there and not from the list.
func (f Folder) Generations() ([]int, error) {
	if f.FS == nil {
		return nil, noList(f.Name)
	}
	newest, _, err := f.newest()
	if err != nil {
		return nil, err
	}
	numbers := []int{newest.Generation}
	entries, err := fs.ReadDir(f.FS, layout.Generations)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, layout.WithoutPath(err)
	}
	for _, e := range entries {
		if n, ok := layout.GenerationOf(e.Name()); ok && n < newest.Generation {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Tags returns the tags of the dataset at path, in alphabetical order.
func Tags(path string) ([]Tag, error) {
	tags, err := FolderAt(path).Tags()
	if err != nil {
		return nil, fmt.Errorf("store: tags of %q: %w", path, err)
	}
	return tags, nil
}

// Tags is like the function [Tags], for a dataset in any folder.
func (f Folder) Tags() ([]Tag, error) {
	if f.FS == nil {
		return nil, noList(f.Name)
	}
	entries, err := fs.ReadDir(f.FS, layout.Tags)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, layout.WithoutPath(err)
	}
	var tags []Tag
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !layout.IsName(name) {
			continue
		}
		t := Tag{Name: name}
		text, err := f.readBounded(layout.Tags+"/"+e.Name(), maxTag)
		if err == nil {
			err = json.Unmarshal(text, &t)
		}
		if err == nil && t.Generation < 1 {
			err = fmt.Errorf("it is %d", t.Generation)
		}
		if err != nil {
			return nil, fmt.Errorf("tag %q is not the name of a generation (%w): %w", name, err, ErrCorrupt)
		}
		tags = append(tags, t)
	}
	return tags, nil
}

// readGeneration reads the manifest of a generation, which is given as a number or a tag; "" is the newest generation.
func readGeneration(path, generation string) (*Manifest, error) {
	if isURL(path) {
		return nil, notLocal()
	}
	return FolderAt(path).Manifest(generation)
}

// Manifest reads the manifest of a generation, which is given as a number or a tag; "" is the newest generation.
func (f Folder) Manifest(generation string) (*Manifest, error) {
	m, _, err := f.Find(generation)
	return m, err
}

// Find is like Manifest, and also returns the bytes of the file.
func (f Folder) Find(generation string) (m *Manifest, text []byte, err error) {
	if f.FS == nil {
		return findInHDF5(f.Name, generation)
	}
	newest, text, err := f.newest()
	if err != nil || generation == "" {
		return newest, text, err
	}
	n, err := f.number(generation)
	if err != nil {
		return nil, nil, err
	}
	if n == newest.Generation {
		return newest, text, nil
	}
	m, text, err = f.read(layout.GenerationName(n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("it keeps no generation %d; the newest is %d, and all are listed by: %s: %w", n,
			newest.Generation, shell.Penstock("log", f.Name), fs.ErrNotExist)
	}
	if err == nil && m.Generation != n {
		err = fmt.Errorf("%s is of generation %d: %w", layout.GenerationName(n), m.Generation, ErrCorrupt)
	}
	return m, text, err
}

// number returns the number of a generation that is given as digits or by a tag. A tag is never only digits, so the two
// cannot be confused.
func (f Folder) number(generation string) (int, error) {
	if n, err := strconv.Atoi(generation); err == nil {
		return n, nil
	}
	tags, err := f.Tags()
	if err != nil {
		return 0, err
	}
	var names []string
	for _, t := range tags {
		if t.Name == generation {
			return t.Generation, nil
		}
		names = append(names, t.Name)
	}
	return 0, fmt.Errorf("it has no tag %q%s: %w", generation, suggest.Hint(generation, names), fs.ErrNotExist)
}

// newest reads the newest manifest of a dataset: the manifest in its folder, or the manifest of a later generation
// whose writer was killed after the commit and before it replaced the manifest in the folder. Generations are numbered
// without gaps behind the newest one, so newest looks for the next number until no generation has it.
func (f Folder) newest() (m *Manifest, text []byte, err error) {
	name := layout.ManifestName
	m, text, err = f.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		if other, otherText, otherErr := f.read(layout.ZarrManifest); !errors.Is(otherErr, fs.ErrNotExist) {
			name, m, text, err = layout.ZarrManifest, other, otherText, otherErr
		}
	}
	for err == nil {
		next := layout.GenerationName(m.Generation + 1)
		later, laterText, laterErr := f.read(next)
		if errors.Is(laterErr, fs.ErrNotExist) || errors.Is(laterErr, fs.ErrPermission) {
			break // where listing is not allowed, a store may answer "permission denied" for a missing object
		}
		if err = laterErr; err == nil && later.Generation != m.Generation+1 {
			err = fmt.Errorf("%s is of generation %d: %w", next, later.Generation, ErrCorrupt)
		}
		m, text = later, laterText
	}
	if err == nil && len(m.Shards) == 0 && name == layout.ManifestName {
		err = fmt.Errorf("%s: it lists no shards: %w", layout.ManifestName, ErrCorrupt)
	}
	return m, text, err
}

// read reads the manifest in a file.
func (f Folder) read(name string) (m *Manifest, text []byte, err error) {
	text, err = f.readBounded(name, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("no %s in it (%w), so it is not a dataset of penstock, or its build did not finish; "+
			"to make a dataset of samples, run: %s", name, fs.ErrNotExist, shell.Penstock("preprocess SOURCE DEST"))
	}
	if errors.Is(err, vfs.ErrTooLarge) {
		return nil, nil, fmt.Errorf("%s: %w: %w", name, err, ErrUnsupported)
	}
	if err != nil {
		return nil, nil, layout.WithoutPath(err)
	}
	if m, err = DecodeManifest(text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, text, nil
}

// readBounded returns the content of a file of at most most bytes; a larger file is an error before it is read.
func (f Folder) readBounded(name string, most int64) ([]byte, error) {
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return vfs.ReadWhole(file, most)
}

// ReadGeneration reads the manifest of a generation of the dataset at path, and the time of its commit. The time is
// returned even if the manifest is corrupt.
func ReadGeneration(path string, generation int) (*Manifest, time.Time, error) {
	if isURL(path) {
		return nil, time.Time{}, fmt.Errorf("store: generation %d of %q: %w", generation, path, notLocal())
	}
	m, at, err := FolderAt(path).Generation(generation)
	if err != nil {
		return nil, at, fmt.Errorf("store: generation %d of %q: %w", generation, path, err)
	}
	return m, at, nil
}

// Generation is like [ReadGeneration], for a dataset in any folder.
func (f Folder) Generation(n int) (*Manifest, time.Time, error) {
	m, err := f.Manifest(strconv.Itoa(n))
	if err == nil && m.Change != nil && m.Change.Time != nil {
		return m, *m.Change.Time, nil
	}
	at, errTime := f.timeOf(n)
	if err == nil {
		err = errTime
	}
	if err != nil {
		return nil, at, err
	}
	return m, at, nil
}

// timeOf returns when a generation was committed, by its file, if the manifest does not say so.
func (f Folder) timeOf(n int) (time.Time, error) {
	if f.FS == nil {
		info, err := os.Stat(f.Name)
		if err != nil {
			return time.Time{}, layout.WithoutPath(err)
		}
		return info.ModTime(), nil
	}
	var err error
	for _, name := range []string{layout.GenerationName(n), layout.ManifestName, layout.ZarrManifest} {
		var info fs.FileInfo
		if info, err = fs.Stat(f.FS, name); err == nil {
			return info.ModTime(), nil
		}
	}
	return time.Time{}, layout.WithoutPath(err)
}
