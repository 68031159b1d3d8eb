package rawcache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare/raw"
)

// MakeRoom removes cached datasets, the least recently used first, until the dataset of this entry
// fits into a cache of limit bytes. Datasets that are pinned, open in a process or being built
// stay. A limit of 0 means no limit.
func (e *Entry) MakeRoom(limit int64, say func(text string)) error {
	if e.Ready {
		return nil
	}
	return e.roomFor(diskBytes(e.print, e.records, e.records), limit, say)
}

// The estimate of a dataset's size. Besides values, a dataset stores offsets, labels, source names,
// file headers and the manifest: perRecord and perShard bytes. Checksums take one byte for perSum
// bytes.
const (
	perRecord = 48
	perShard  = 48 << 10
	perSum    = 8192
)

// diskBytes estimates the bytes on disk of a shard with some of all records of the source.
func diskBytes(print *raw.Fingerprint, some, all int64) int64 {
	values := (print.Bytes + print.Names) * some / max(1, all)
	return values + values/perSum + perRecord*some + perShard
}

// roomFor makes room for an entry that will have need bytes. An entry does not count its own
// present bytes, which need includes.
func (e *Entry) roomFor(need, limit int64, say func(text string)) error {
	if limit == 0 {
		return nil
	}
	list, err := listIn(filepath.Dir(e.Path))
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(o Entry) bool { return o.Name == e.Name })
	slices.SortStableFunc(list, func(a, b Entry) int { return a.Used.Compare(b.Used) })
	total := need
	for _, o := range list {
		total += o.Bytes
	}
	for _, o := range list {
		if total <= limit {
			break
		}
		removed, err := o.evict()
		if err != nil {
			return err
		}
		if removed {
			total -= o.Bytes
			say(fmt.Sprintf("the dataset of %s was removed from the cache to make room, %s", o.label(), units.Bytes(o.Bytes)))
		}
	}
	if total > limit {
		return fmt.Errorf("%s needs %s, and the cache may have %s, and %s are in use or pinned; raise the cache size "+
			"(--cache-size)", e.Source, units.Bytes(need), units.Bytes(limit), units.Bytes(total-need))
	}
	return nil
}

// Replace removes the datasets of earlier states of the source, unless they are pinned or in use.
// It is called when the new dataset is complete.
func (e *Entry) Replace(say func(text string)) error {
	list, err := listIn(filepath.Dir(e.Path))
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range list {
		if !o.equals(e.origin) || o.Name == e.Name {
			continue
		}
		removed, err := o.evict()
		if removed {
			say(fmt.Sprintf("%s changed: the dataset of its earlier state was removed, %s", e.Source, units.Bytes(o.Bytes)))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// label returns a name of the entry for people.
func (e *Entry) label() string {
	if e.Source != "" {
		return e.Source
	}
	return e.Name
}

// evict removes the entry, unless it is pinned or in use, and reports whether it did. It takes the
// locks of readers, of a process that adds a generation and of a build, and keeps them until
// everything is removed, so that no process opens the dataset meanwhile.
func (e *Entry) evict() (removed bool, err error) {
	if e.Pinned {
		return false, nil
	}
	for _, path := range []string{e.Path + used, e.Path + changing, e.Path + building + ".building.lock"} {
		f, err := os.OpenFile(path, os.O_RDWR, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		defer f.Close() // after the removal, so that nobody opens the dataset meanwhile
		if lease.Lock(f, lease.Alone) != nil {
			return false, nil
		}
	}
	return true, e.Remove()
}
