package edit

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Chosen is some of the records of a generation, by the places at which they are stored, which are the same in later
// generations: see mmapds.Dataset.Stored. Record i is bit i%64 of word i/64.
type Chosen struct {
	Generation int      // 0 is the newest one
	Words      []uint64 // of all stored records, deleted ones included
	Where      string   // what the log says about why these
}

// Delete leaves records out of the next generation of the dataset at path, which writes a manifest and nothing
// else. Their values stay in the files, for earlier generations and for [Undelete]; to have files without them, write
// the dataset out. Records that are deleted already stay so. If others are deleted, appended or restored meanwhile, all
// of that happens.
func Delete(path string, records Chosen, opts Options) (*store.Manifest, error) {
	return At(path).Delete(records, opts)
}

// Delete is the function of that name.
func (d *Dataset) Delete(records Chosen, opts Options) (*store.Manifest, error) {
	m, err := d.mark(records, write.Delete, store.Change{Operation: "delete", By: opts.By})
	if err != nil {
		return nil, fmt.Errorf("store: delete records of %q: %w", d.name, err)
	}
	return m, nil
}

// Undelete takes deleted records back into the next generation. The error says so if a column was written while they
// were deleted.
func Undelete(path string, records Chosen, opts Options) (*store.Manifest, error) {
	return At(path).Undelete(records, opts)
}

// Undelete is the function of that name.
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
	generation := ""
	if records.Generation > 0 {
		generation = strconv.Itoa(records.Generation)
	}
	of, err := d.lists.Manifest(generation)
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
