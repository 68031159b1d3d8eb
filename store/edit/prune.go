package edit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// PruneOptions says which generations Prune keeps besides the newest one, those with tags, and those that are open. The
// zero value keeps no others.
type PruneOptions struct {
	Last   int           // the newest ones, as many as this
	Within time.Duration // those that were the newest one at some time in this span
	Keep   []int         // these
	DryRun bool          // remove nothing, and report what would be removed
}

// Pruned describes the generations and files that Prune removed, or would remove.
type Pruned = write.Pruned

// Prune removes generations of the dataset at path, and the files that no kept generation lists. A generation that
// a process of this machine has open is kept, and reported. Processes of other machines are not seen: there, Within has
// to cover the time for which they have datasets open.
func Prune(path string, opts PruneOptions) (*Pruned, error) {
	p, err := prune(path, opts)
	if err != nil {
		return nil, fmt.Errorf("store: prune %q: %w", path, err)
	}
	return p, nil
}

func prune(path string, opts PruneOptions) (*Pruned, error) {
	if err := notFlat(path); err != nil {
		return nil, err
	}
	log, err := Log(path)
	if err != nil {
		return nil, err
	}
	kept := slices.Clone(opts.Keep)
	for i, e := range log {
		ended := i > 0 && time.Since(log[i-1].Time) > opts.Within
		if i < opts.Last || len(e.Tags) > 0 || !ended {
			kept = append(kept, e.Generation)
		}
	}
	return write.Prune(path, func(n int) bool { return slices.Contains(kept, n) }, write.DryRun(opts.DryRun))
}

// Entry is a generation in a log.
type Entry struct {
	Generation int           `json:"generation"`
	Parent     int           `json:"parent,omitempty"`
	ID         string        `json:"id"`
	Records    int64         `json:"records"` // without deleted ones
	Deleted    int64         `json:"deleted,omitempty"`
	Columns    []string      `json:"columns"`
	Time       time.Time     `json:"time"` // of the commit
	Change     *store.Change `json:"change,omitempty"`
	Tags       []string      `json:"tags,omitempty"`
	Corrupt    string        `json:"corrupt,omitempty"` // why its manifest cannot be read; nothing else is known of it
}

// Log returns the generations that the dataset at path keeps, the newest first.
func Log(path string) ([]Entry, error) {
	numbers, err := store.Generations(path)
	if err != nil {
		return nil, NotFlat(path, err)
	}
	tags, err := store.Tags(path)
	if err != nil {
		return nil, err
	}
	var log []Entry
	for _, n := range slices.Backward(numbers) {
		e, err := entry(path, n)
		if write.Unreadable(err) {
			e, err = corrupt(path, n, err)
		}
		if err != nil {
			return nil, err
		}
		for _, t := range tags {
			if t.Generation == n {
				e.Tags = append(e.Tags, t.Name)
			}
		}
		log = append(log, e)
	}
	return log, nil
}

// corrupt returns what is known of a generation whose manifest cannot be read.
func corrupt(path string, n int, why error) (Entry, error) {
	info, err := os.Stat(filepath.Join(path, filepath.FromSlash(layout.GenerationName(n))))
	if err != nil {
		return Entry{}, layout.WithoutPath(err)
	}
	return Entry{Generation: n, Time: info.ModTime(), Corrupt: why.Error()}, nil
}

// entry returns a generation as the log has it, without its tags.
func entry(path string, n int) (Entry, error) {
	m, at, err := store.ReadGeneration(path, n)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Generation: n, Parent: m.Parent, ID: m.ID, Records: m.Live(), Time: at, Change: m.Change}
	if m.Deleted != nil {
		e.Deleted = m.Deleted.Records
	}
	for _, f := range m.Fields {
		e.Columns = append(e.Columns, f.Name)
	}
	return e, nil
}
