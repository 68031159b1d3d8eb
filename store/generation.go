package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
)

// Tag is a name of a generation, as a file of its own has it.
type Tag struct {
	Name       string `json:"-"`
	Generation int    `json:"generation"`
	ID         string `json:"id"` // of the generation's manifest
}

// Generations returns the numbers of the generations that the dataset at path keeps, in ascending order. The last
// one is the newest.
func Generations(path string) ([]int, error) {
	newest, err := newestManifest(path)
	if err != nil {
		return nil, fmt.Errorf("store: generations of %q: %w", path, err)
	}
	numbers := []int{newest.Generation}
	entries, err := os.ReadDir(filepath.Join(path, layout.Generations))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store: generations of %q: %w", path, layout.WithoutPath(err))
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
	folder := filepath.Join(path, filepath.FromSlash(layout.Tags))
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store: tags of %q: %w", path, layout.WithoutPath(err))
	}
	var tags []Tag
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !layout.IsName(name) {
			continue
		}
		t := Tag{Name: name}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err == nil {
			err = json.Unmarshal(text, &t)
		}
		if err == nil && t.Generation < 1 {
			err = fmt.Errorf("it is %d", t.Generation)
		}
		if err != nil {
			return nil, fmt.Errorf("store: tag %q of %q is not the name of a generation (%w): %w", name, path, err,
				ErrCorrupt)
		}
		tags = append(tags, t)
	}
	return tags, nil
}

// readGeneration reads the manifest of a generation: that of a number, or of a tag; "" is the newest.
func readGeneration(path, generation string) (*Manifest, error) {
	if isURL(path) {
		return nil, notLocal()
	}
	newest, err := newestManifest(path)
	if err != nil || generation == "" {
		return newest, err
	}
	n, err := generationNumber(path, generation)
	if err != nil {
		return nil, err
	}
	if n == newest.Generation {
		return newest, nil
	}
	m, err := readManifest(path, layout.GenerationName(n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("it keeps no generation %d; the newest is %d, and all are listed by: %s: %w", n,
			newest.Generation, shell.Penstock("log", path), fs.ErrNotExist)
	}
	if err == nil && m.Generation != n {
		err = fmt.Errorf("%s is of generation %d: %w", layout.GenerationName(n), m.Generation, ErrCorrupt)
	}
	return m, err
}

// generationNumber resolves the name of a generation: digits, or a tag.
func generationNumber(path, generation string) (int, error) {
	if n, err := strconv.Atoi(generation); err == nil {
		return n, nil
	}
	tags, err := Tags(path)
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

// newestManifest reads the manifest of a dataset: the one in its folder, or that of a later generation whose writer
// ended before it could replace that one.
func newestManifest(path string) (*Manifest, error) {
	name := layout.Manifest(path)
	m, err := readManifest(path, name)
	for err == nil {
		next := layout.GenerationName(m.Generation + 1)
		if _, missing := os.Lstat(filepath.Join(path, filepath.FromSlash(next))); missing != nil {
			break
		}
		var later *Manifest
		if later, err = readManifest(path, next); err == nil && later.Generation != m.Generation+1 {
			err = fmt.Errorf("%s is of generation %d: %w", next, later.Generation, ErrCorrupt)
		}
		m = later
	}
	if err == nil && len(m.Shards) == 0 && name == layout.ManifestName {
		err = fmt.Errorf("%s: it lists no shards: %w", layout.ManifestName, ErrCorrupt)
	}
	return m, err
}

// NoGenerations returns the error for a dataset that is not flat and not Zarr of penstock, where a generation or a
// change is asked for. It is ErrUnsupported.
func NoGenerations(path string) error {
	return fmt.Errorf("%s keeps no generations and cannot be changed: folders of .npy files do, and Zarr that penstock "+
		"wrote; to convert it, run: %s: %w", path,
		shell.Penstock("preprocess", path, "FOLDER"), ErrUnsupported)
}

// ReadGeneration reads the manifest of a generation of the dataset at path, and when that was committed.
func ReadGeneration(path string, generation int) (*Manifest, time.Time, error) {
	m, err := readGeneration(path, strconv.Itoa(generation))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("store: generation %d of %q: %w", generation, path, err)
	}
	if m.Change != nil && m.Change.Time != nil {
		return m, *m.Change.Time, nil
	}
	info, err := os.Stat(filepath.Join(path, filepath.FromSlash(layout.GenerationName(generation))))
	if err != nil {
		info, err = os.Stat(filepath.Join(path, filepath.FromSlash(layout.Manifest(path))))
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("store: generation %d of %q: %w", generation, path, layout.WithoutPath(err))
	}
	return m, info.ModTime(), nil
}
