package edit

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/penstock/penstock/internal/subset"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Chosen is a set of records of a generation, by the places at which they are stored: see mmapds.Dataset.Stored. Places
// are the same in later generations, while numbers change with each delete. Record i is bit i%64 of word i/64.
type Chosen struct {
	Generation int      // 0 is the newest one
	Words      []uint64 // a bit for each stored record, deleted ones included
	Where      string   // the condition that chose the records, for the log
}

// Choose returns the records with these numbers in a generation of the dataset, counted from 0 and without deleted
// records; generation 0 is the newest one. A number that is out of range or given twice is an error.
func (d *Dataset) Choose(generation int, numbers []int64) (c Chosen, err error) {
	m, err := manifestOf(d.lists, generation)
	if err != nil {
		err = d.notFlat(err)
	} else {
		c, err = chosenOf(m, numbers)
	}
	if err != nil {
		return Chosen{}, fmt.Errorf("store: choose records of %q: %w", d.name, err)
	}
	return c, nil
}

func chosenOf(m *store.Manifest, numbers []int64) (c Chosen, err error) {
	stored, err := storedOf(m)
	if err != nil {
		return c, err
	}
	c = Chosen{Generation: m.Generation, Words: make([]uint64, (m.Records+63)/64)}
	for _, number := range numbers {
		if number < 0 || number >= m.Live() {
			return c, fmt.Errorf("record %d: generation %d has %d records, numbered from 0 to %d", number, m.Generation,
				m.Live(), m.Live()-1)
		}
		place := stored(number)
		if c.Words[place/64]>>(place%64)&1 != 0 {
			return c, fmt.Errorf("record %d is given twice; give each number once", number)
		}
		c.Words[place/64] |= 1 << (place % 64)
	}
	return c, nil
}

// storedOf returns a function that finds the place at which the record with a number is stored.
func storedOf(m *store.Manifest) (func(number int64) int64, error) {
	if m.Deleted == nil {
		return func(number int64) int64 { return number }, nil
	}
	words, err := m.Deleted.Words(m.Records)
	if err != nil {
		return nil, err
	}
	for k := range words {
		words[k] = ^words[k] // bits past the last record become 1, too, but valid numbers find only the bits before these
	}
	live := subset.New(words)
	return func(number int64) int64 { return int64(live.At(int(number))) }, nil
}

// manifestOf returns the manifest of a generation, 0 for the newest one.
func manifestOf(lists lister, generation int) (*store.Manifest, error) {
	if generation == 0 {
		return lists.Manifest("")
	}
	return lists.Manifest(strconv.Itoa(generation))
}

// Delete leaves records out of the next generation of the dataset: it writes a manifest and nothing else. Their values
// stay in the files, for earlier generations and for [Dataset.Undelete]; [Dataset.Prune] or a copy of the dataset
// removes them. Records that are deleted already stay deleted. If other records are deleted, appended or restored
// meanwhile, all changes are kept.
func (d *Dataset) Delete(records Chosen, opts Options) (*store.Manifest, error) {
	m, err := d.mark(records, write.Delete, store.Change{Operation: "delete", By: opts.By})
	if err != nil {
		return nil, fmt.Errorf("store: delete records of %q: %w", d.name, err)
	}
	return m, nil
}

// Undelete restores deleted records in the next generation. The error lists records for which a column has no values
// because it was written while they were deleted.
func (d *Dataset) Undelete(records Chosen, opts Options) (*store.Manifest, error) {
	m, err := d.mark(records, write.Undelete, store.Change{Operation: "restore records", By: opts.By})
	if err != nil {
		return nil, fmt.Errorf("store: restore records of %q: %w", d.name, err)
	}
	return m, nil
}

// marker is write.Delete or write.Undelete.
type marker func(home write.Home, of *store.Manifest, marked []uint64, change store.Change) (*store.Manifest, error)

func (d *Dataset) mark(records Chosen, do marker, change store.Change) (*store.Manifest, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	of, err := manifestOf(d.lists, records.Generation)
	if err != nil {
		return nil, err
	}
	n := of.Records
	if int64(len(records.Words)) != (n+63)/64 || n%64 != 0 && records.Words[n/64]>>(n%64) != 0 {
		return nil, errors.New("the words are not of as many records as it has stored")
	}
	change.Where = records.Where
	return do(d.home, of, records.Words, change)
}
