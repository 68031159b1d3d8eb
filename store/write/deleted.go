package write

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// without changes the list of the columns that have no values for deleted records.
func (e *Editing) without(change func(list []string) []string) {
	if e.deleted != nil {
		e.deleted.Without = change(e.deleted.Without)
	}
}

// wrote says that a column was written, with values for the records that are not deleted.
func (e *Editing) wrote(name string) {
	e.without(func(list []string) []string {
		if slices.Contains(list, name) {
			return list
		}
		return append(list, name)
	})
}

// Delete leaves stored records out of the next generation of a dataset: those of of, a generation of it,
// that are marked. Record i is bit i%64 of word i/64. Records that are deleted already stay so.
func Delete(home Home, of *store.Manifest, marked []uint64, change store.Change) (*store.Manifest, error) {
	return mark(home, of, change, func(deleted []uint64, e *Editing) (n int64, err error) {
		for k, w := range marked {
			n += int64(bits.OnesCount64(w &^ deleted[k]))
			deleted[k] |= w
		}
		if n == 0 {
			return 0, errors.New("no record of it is to be deleted that is not deleted already")
		}
		if e.deleted = store.NewDeleted(deleted, e.Base.Records); e.deleted.Records == e.Base.Records {
			return 0, errors.New("all records would be deleted, and a dataset needs one")
		}
		if was := e.Base.Deleted; was != nil {
			e.deleted.Without = slices.Clone(was.Without)
		}
		return n, nil
	})
}

// Undelete takes stored records that were deleted back into the next generation: those of of that are marked, as in
// Delete.
func Undelete(home Home, of *store.Manifest, marked []uint64, change store.Change) (*store.Manifest, error) {
	return mark(home, of, change, func(deleted []uint64, e *Editing) (n int64, err error) {
		for k, w := range marked {
			n += int64(bits.OnesCount64(w & deleted[k]))
			deleted[k] &^= w
		}
		if n == 0 {
			return 0, errors.New("none of these records is deleted")
		}
		if was := e.Base.Deleted; len(was.Without) > 0 {
			return 0, fmt.Errorf("columns were written while records were deleted, which have no values for them: %q; drop "+
				"these columns first, or restore an earlier generation", was.Without)
		}
		e.deleted = store.NewDeleted(deleted, e.Base.Records)
		return n, nil
	})
}

// mark commits a generation with other deleted records. f changes their marks, and returns how many it changed.
func mark(home Home, of *store.Manifest, change store.Change,
	f func(deleted []uint64, e *Editing) (int64, error)) (*store.Manifest, error) {
	return commit(home, func(base *store.Manifest) (*Revision, error) {
		if err := sameShards(of, base); err != nil {
			return nil, err
		}
		deleted, err := base.Deleted.Words(base.Records)
		if err != nil {
			return nil, err
		}
		e, err := newEditing(base)
		if err != nil {
			return nil, err
		}
		if change.Records, err = f(deleted, e); err != nil {
			return nil, err
		}
		return e.revision(change)
	})
}

// sameShards reports records of an earlier generation that do not have the same places in a later one.
func sameShards(of, base *store.Manifest) error {
	same := func(a, b store.Shard) bool { return a.First == b.First && a.Count == b.Count }
	if of.Records <= base.Records && len(of.Shards) <= len(base.Shards) &&
		slices.EqualFunc(of.Shards, base.Shards[:len(of.Shards)], same) {
		return nil
	}
	return layout.WithMark(fmt.Errorf("generation %d, which is the newest one now, has other records than generation "+
		"%d, in which they were chosen; choose them again", base.Generation, of.Generation), store.ErrBusy)
}
