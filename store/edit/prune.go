package edit

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// PruneOptions says which generations Prune keeps. Prune always keeps the newest generation, generations with tags, and
// generations that are open; the zero value keeps no others.
type PruneOptions struct {
	Last   int           // how many of the newest generations
	Within time.Duration // generations that were the newest at some time in this span
	Keep   []int         // numbers of generations
	DryRun bool          // remove nothing, and report what would be removed
	By     string        // the author of an erasure in the log: a command, a call
}

// Pruned describes the generations and files that Prune removed, or would remove.
type Pruned = write.Pruned

// Prune removes generations of the dataset, and the files that no kept generation lists. A generation that a process of
// this machine has open is kept, and reported. Processes of other machines are not seen: for them, Within has to cover
// the time for which they have datasets open.
//
// If only the newest generation is kept, no file and no log has anything of deleted records afterwards. To that end
// Prune writes columns with values of such records again, which makes generations, takes space for one column at a
// time, and gives the dataset another id. The other records keep their places.
//
// A bucket does not tell which generations are open, or which files belong to columns that are being written. So Prune
// keeps the generations that were the newest within Within, and the files that were written within it.
func (d *Dataset) Prune(opts PruneOptions) (*Pruned, error) {
	p, err := d.prune(opts)
	if err != nil {
		return nil, fmt.Errorf("store: prune %q: %w", d.name, err)
	}
	return p, nil
}

func (d *Dataset) prune(opts PruneOptions) (*Pruned, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	e, err := d.erasureAfter(opts)
	if err != nil {
		return nil, err
	}
	if !opts.DryRun {
		if err := d.erase(e, opts.By); err != nil {
			return nil, err
		}
	}
	p, err := d.pruneFiles(opts, write.DryRun(opts.DryRun))
	if err != nil || len(p.Corrupt) > 0 {
		return p, err
	}
	if opts.DryRun {
		p.Erased = e.records
		return p, nil
	}
	kept, err := d.lists.Generations()
	if len(kept) > 1 {
		p.Postponed = e.records
	} else {
		p.Erased = e.records
	}
	return p, err
}

// pruneFiles removes generations and files. A generation that was the newest generation until recently may still be
// read, so Within is compared with the time of the commit that followed it.
func (d *Dataset) pruneFiles(opts PruneOptions, dry write.DryRun) (*Pruned, error) {
	log, err := d.log()
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
	keep := func(n int) bool { return slices.Contains(kept, n) }
	if d.bucket != nil {
		return d.bucket.Prune(keep, opts.Within, dry)
	}
	return write.Prune(d.name, keep, dry)
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
	Corrupt    string        `json:"corrupt,omitempty"` // why the manifest cannot be read; most fields are then unset
}

// Log returns the generations that the dataset keeps, the newest first.
func (d *Dataset) Log() ([]Entry, error) {
	log, err := d.log()
	if err != nil && d.InBucket() {
		err = fmt.Errorf("store: generations of %q: %w", d.name, err)
	}
	return log, err
}

func (d *Dataset) log() ([]Entry, error) {
	numbers, err := d.lists.Generations()
	if err != nil {
		return nil, d.notFlat(err)
	}
	tags, err := d.lists.Tags()
	if err != nil {
		return nil, err
	}
	var log []Entry
	for _, n := range slices.Backward(numbers) {
		e, err := entryOf(d.lists, n)
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

// entryOf returns the log's entry of a generation, without its tags. A manifest that cannot be read is an entry with
// the reason, as one damaged generation must not hide the others.
func entryOf(lists lister, n int) (Entry, error) {
	m, at, err := lists.Generation(n)
	if write.Unreadable(err) && !at.IsZero() {
		return Entry{Generation: n, Time: at, Corrupt: err.Error()}, nil
	}
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
