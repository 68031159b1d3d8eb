package write

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
)

// readDeleted reads the set of deleted records of the newest generation, and for each column the deleted records
// without a value.
func (e *Editing) readDeleted() (err error) {
	was := e.Base.Deleted
	if was == nil {
		return nil
	}
	if e.deleted, err = was.Words(e.Base.Records); err != nil {
		return err
	}
	for _, name := range was.Without {
		words, err := was.Lacks(name, e.Base.Records)
		if err != nil {
			return err
		}
		e.setWithoutValues(name, words)
	}
	return nil
}

// setWithoutValues records the deleted records for which a column has no values. The column has values for all other
// records.
func (e *Editing) setWithoutValues(name string, words []uint64) {
	if e.withoutValues == nil {
		e.withoutValues = make(map[string][]uint64)
	}
	e.withoutValues[name] = words
}

// leftOut returns the manifest's description of deleted records. Records that were restored are taken out of the sets
// of records without values, and a set that becomes empty is not listed.
func (e *Editing) leftOut() *store.Deleted {
	d := store.NewDeleted(e.deleted, e.Base.Records)
	if d == nil {
		return nil
	}
	for _, f := range e.fields {
		words := slices.Clone(e.withoutValues[f.Name])
		some := uint64(0)
		for k := range words {
			words[k] &= e.deleted[k]
			some |= words[k]
		}
		if some != 0 {
			d.Lack(f.Name, words, e.deleted, e.Base.Records)
		}
	}
	return d
}

// Delete leaves the marked records of a generation out of the next generation of a dataset. Stored record i of
// generation of is bit i%64 of word i/64. Records that were deleted before stay deleted. No file is changed: values
// stay where earlier generations and Undelete find them.
func Delete(home Home, of *store.Manifest, marked []uint64, change store.Change) (*store.Manifest, error) {
	return mark(home, of, change, func(e *Editing) (n int64, err error) {
		all := int64(0)
		for k, w := range marked {
			n += int64(bits.OnesCount64(w &^ e.deleted[k]))
			e.deleted[k] |= w
		}
		for _, w := range e.deleted {
			all += int64(bits.OnesCount64(w))
		}
		return n, CheckDelete(n, e.Base.Records-all)
	})
}

// CheckDelete refuses to delete n records and leave that many, if nothing would be deleted or no record would be left.
func CheckDelete(n, left int64) error {
	switch {
	case n == 0:
		return errors.New("no record of it is to be deleted that is not deleted already")
	case left == 0:
		return errors.New("all records would be deleted, and a dataset needs one")
	}
	return nil
}

// Undelete restores deleted records in the next generation: the marked records of generation of, as in Delete. Every
// column must have values for all of them; a column that was written after the delete has no values for them.
func Undelete(home Home, of *store.Manifest, marked []uint64, change store.Change) (*store.Manifest, error) {
	return mark(home, of, change, func(e *Editing) (n int64, err error) {
		restored := make([]uint64, len(e.deleted))
		for k, w := range marked {
			restored[k] = w & e.deleted[k]
			n += int64(bits.OnesCount64(restored[k]))
			e.deleted[k] &^= w
		}
		if n == 0 {
			return 0, errors.New("none of these records is deleted")
		}
		return n, e.checkWhole(restored, n)
	})
}

// checkWhole refuses to restore records for which a column has no values: readers would see zeros that nobody has
// written.
func (e *Editing) checkWhole(restored []uint64, n int64) error {
	var columns []string
	missing := make([]uint64, len(restored))
	for _, f := range e.fields {
		some := uint64(0)
		for k, w := range e.withoutValues[f.Name] {
			missing[k] |= w & restored[k]
			some |= w & restored[k]
		}
		if some != 0 {
			columns = append(columns, f.Name)
		}
	}
	if columns == nil {
		return nil
	}
	places, of := places(missing)
	return fmt.Errorf("%d of these %s have no values in columns %q, which were written while they were deleted: those "+
		"stored at %s; restore others, drop these columns first, or restore an earlier generation", of,
		units.Counted(n, "record"), columns, places)
}

// mostPlaces is how many places of records an error lists.
const mostPlaces = 10

// places lists some of the marked places, and says how many there are.
func places(words []uint64) (text string, n int64) {
	for k, w := range words {
		for ; w != 0; w &= w - 1 {
			switch n++; {
			case n == 1:
				text = fmt.Sprint(64*k + bits.TrailingZeros64(w))
			case n <= mostPlaces:
				text += fmt.Sprintf(", %d", 64*k+bits.TrailingZeros64(w))
			}
		}
	}
	if n > mostPlaces {
		text += fmt.Sprintf(" and %d more", n-mostPlaces)
	}
	return text, n
}

// mark commits a generation with another set of deleted records. f changes the set and returns how many records it has
// changed. After a concurrent commit f is called again, with that commit's set.
func mark(home Home, of *store.Manifest, change store.Change, f func(e *Editing) (int64, error)) (*store.Manifest,
	error) {
	return commit(home, func(base *store.Manifest) (*store.Manifest, error) {
		if err := sameShards(of, base); err != nil {
			return nil, err
		}
		e, err := NewEditing(base)
		if err != nil {
			return nil, err
		}
		if e.deleted == nil {
			e.deleted = make([]uint64, (base.Records+63)/64)
		}
		if change.Records, err = f(e); err != nil {
			return nil, err
		}
		return e.manifest(change)
	})
}

// sameShards refuses records that were chosen in an earlier generation and do not have the same places in base: other
// records would be deleted or restored in their place.
func sameShards(of, base *store.Manifest) error {
	if Shared(of, base) == of.Records {
		return nil
	}
	return layout.WithMark(fmt.Errorf("generation %d, which is the newest one now, has other records than generation "+
		"%d, in which they were chosen; choose them again", base.Generation, of.Generation), store.ErrBusy)
}

// Shared returns how many stored records two generations of a dataset have in common. These are the first records of
// both. Shards are compared by their files, not by their positions: after a restore of an earlier generation, an
// append puts other records, in files of their own, at positions that a removed generation used. If every column of
// the first shard was replaced, the generations have no file in common; then all records of the smaller generation
// count as shared.
func Shared(a, b *store.Manifest) (records int64) {
	same := func(a, b store.Shard) bool {
		return a.First == b.First && a.Count == b.Count && slices.ContainsFunc(a.Files, func(f store.File) bool {
			return slices.ContainsFunc(b.Files, func(g store.File) bool { return f.Name == g.Name })
		})
	}
	if len(a.Shards) == 0 || len(b.Shards) == 0 || !same(a.Shards[0], b.Shards[0]) {
		return min(a.Records, b.Records)
	}
	for k := range min(len(a.Shards), len(b.Shards)) {
		if !same(a.Shards[k], b.Shards[k]) {
			break
		}
		records += a.Shards[k].Count
	}
	return records
}

// lastAppend returns the generation that appended the last records of m, or the first kept generation after it. The
// journal of a column stores the number: after a restore of an earlier generation, a new append can put other records
// at the same places. The number is 0 if all records are in one shard.
func lastAppend(home Home, m *store.Manifest) int {
	if len(m.Shards) < 2 {
		return 0
	}
	for m.Parent > 0 && m.Change != nil && m.Change.Operation != "append" {
		n := m.Parent
		if m.Change.Operation == "restore" {
			n = m.Change.From
		}
		earlier, err := home.Folder().Manifest(strconv.Itoa(n))
		if err != nil { // it was pruned
			break
		}
		m = earlier
	}
	return m.Generation
}
