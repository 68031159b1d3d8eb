package archive

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
)

// index is a list of the shards of a WebDataset, as wids has it (wids/wids_specs.py).
type index struct {
	Version  int     `json:"wids_version"`
	Shards   []shard `json:"shardlist"`
	Datasets []struct {
		Shards []shard `json:"shardlist"`
		Source string  `json:"source_url"`
		Base   string  `json:"base"`
	} `json:"datasets"`
}

type shard struct {
	URL     string `json:"url"`
	Samples *int64 `json:"nsamples"`
}

// maxIndex is the most bytes that an index has.
const maxIndex = 64 << 20

// expand puts the shards of indexes in the place of these, in the order that they have there. It returns how many
// samples shards have by them.
func (a *archive) expand() (samples map[string]int64, err error) {
	samples = make(map[string]int64)
	given := a.splits
	a.splits = source.FileSplits{Names: given.Names, Of: make(map[string]string)}
	var files []string
	for _, name := range a.files {
		shards := []string{name}
		if !strings.Contains(filepath.Base(name), ".tar") && source.IsWids(a.root, name) {
			if shards, err = readIndex(a.root, name, samples); err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Base(name), source.WithoutPath(err))
			}
		}
		for _, s := range shards {
			a.splits.Of[s] = given.Of[name]
		}
		files = append(files, shards...)
	}
	if len(samples) > 0 && given.Names == nil {
		a.splits = source.SplitsOfFiles(files)
	}
	a.files = files
	return samples, nil
}

// readIndex returns the shards of an index, and adds how many samples they have.
func readIndex(root *vfs.Root, name string, samples map[string]int64) (files []string, err error) {
	var x index
	if err := source.ReadJSON(root, name, "index of wids", maxIndex, &x); err != nil {
		return nil, err
	}
	if x.Version != 1 {
		return nil, fmt.Errorf("is an index of wids of version %d, and 1 is expected", x.Version)
	}
	shards := x.Shards
	for _, d := range x.Datasets {
		if d.Source != "" || d.Base != "" {
			return nil, fmt.Errorf("leads to other places (%q); build datasets from these, and combine them: %s",
				d.Source+d.Base, shell.Penstock("preprocess --append"))
		}
		shards = append(shards, d.Shards...)
	}
	if len(shards) == 0 {
		return nil, errors.New("names no shards")
	}
	for i, s := range shards {
		file, err := s.file(root, filepath.Dir(name))
		if err == nil && (s.Samples == nil || *s.Samples < 0) {
			err = errors.New("nsamples is not a number of samples")
		}
		if _, twice := samples[file]; err == nil && twice {
			err = errors.New("is named twice")
		}
		if err != nil {
			return nil, fmt.Errorf("shard %d, %s: %w", i, s.URL, err)
		}
		samples[file] = *s.Samples
		files = append(files, file)
	}
	return files, nil
}

// file returns the path of a shard.
func (s *shard) file(root *vfs.Root, dir string) (string, error) {
	path := filepath.FromSlash(s.URL)
	switch scheme, rest, _ := strings.Cut(s.URL, "://"); {
	case s.URL == "":
		return "", errors.New("has no URL")
	case scheme == "file":
		path = filepath.FromSlash(rest)
	case remote.IsURL(s.URL):
		if path = filepath.Clean(path); !vfs.Mounted(path) {
			return "", errors.New("is in another place than the index; put the index next to its shards, or name these: " +
				shell.Penstock("preprocess 's3://BUCKET/train-{000..127}.tar' DEST"))
		}
	case !filepath.IsAbs(path):
		path = filepath.Join(dir, path)
	}
	info, err := root.Stat(path)
	if errors.Is(err, vfs.ErrOutside) {
		return "", source.WithoutPath(err)
	}
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.New("no such file")
	}
	return path, nil
}

// checkCounts compares with what indexes say.
func (a *archive) checkCounts(samples map[string]int64) error {
	for i, name := range a.files {
		if n, ok := samples[name]; ok && n != a.counts[i].groups {
			return fmt.Errorf("%s has %d samples, and %d by its index", filepath.Base(name), a.counts[i].groups, n)
		}
	}
	return nil
}
