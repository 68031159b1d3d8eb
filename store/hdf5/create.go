package hdf5

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Create begins a dataset in the HDF5 file dest. With opts.Append it begins a file that has the records of dest and
// more, and that takes the place of dest.
//
// If the number of records is given and no other option needs more, the file is made at once and records are written to
// their places in it; its disk space is reserved, where the file system can do that. If fewer records come, Commit
// copies them into a file of the right size, for which there must be space. In all other cases (ragged fields, splits,
// an append, an unknown number, compression) the records are collected in plain files first, and Commit copies these
// into the file: there must be space for both. The result is the same, byte for byte.
//
// The Writer holds up to 2 MiB of memory for each column and split. An error can wrap store.ErrExist, store.ErrBusy or
// the system's error number.
func Create(dest string, schema store.Schema, opts Options) (store.Writer, error) {
	if err := check(schema, opts); err != nil {
		return nil, fmt.Errorf("store: create %q: %w", dest, err)
	}
	stage, err := write.OpenStage(dest, write.StageOptions{Overwrite: opts.Overwrite, Append: opts.Append,
		Keep: opts.Journal != nil})
	if err != nil {
		return nil, fmt.Errorf("store: create: %w", err)
	}
	w, err := begin(stage, schema, opts)
	if err != nil {
		return nil, fmt.Errorf("store: create %q: %w", stage.Dest(), errors.Join(err, stage.Leave()))
	}
	return w, nil
}

// begin chooses between writing records to their places in the HDF5 file and collecting them first. A file that is
// replaced must still have the seal of its metadata: what another program added to it would be lost.
func begin(stage *write.Stage, schema store.Schema, opts Options) (store.Writer, error) {
	if opts.Append || opts.Replaces != nil {
		if err := checkSealed(stage); err != nil {
			return nil, err
		}
	}
	if err := opts.Replaces.check(stage); err != nil {
		return nil, err
	}
	if direct(schema, opts) {
		w, err := newWriter(stage, schema, opts)
		if err != nil {
			return nil, err
		}
		return write.NewWriter(stage, w, w), nil
	}
	c, err := newCollector(stage, schema, opts)
	if err != nil {
		return nil, err
	}
	return write.NewWriter(stage, c.shards, c), nil
}

// direct reports whether the places of all records are known from the start.
func direct(schema store.Schema, opts Options) bool {
	for _, f := range schema.Fields {
		if f.Ragged {
			return false
		}
	}
	if opts.Replaces != nil {
		return len(opts.Replaces.Storage) == 0
	}
	return opts.Records > 0 && !opts.Append && opts.Splits == nil && opts.Compress == nil
}

// check refuses schemas and options that cannot be written.
func check(schema store.Schema, opts Options) error {
	if err := schema.Validate(); err != nil {
		return err
	}
	if schema.Index(metadataGroup[1:]) >= 0 {
		return errors.New(`field "penstock": HDF5 files keep their metadata under that name; choose another one`)
	}
	if opts.Records < 0 {
		return fmt.Errorf("for %d records", opts.Records)
	}
	if opts.Append && opts.Compress != nil {
		return errors.New("an append keeps the compression of the dataset; leave --compress out")
	}
	if err := opts.Compress.check(); err != nil {
		return err
	}
	total := int64(0)
	for _, c := range fixedColumns(schema, opts.Records) {
		o := payload(c)
		n, err := o.Bytes()
		if err != nil {
			return err
		}
		if total += n; total > 1<<61 {
			return fmt.Errorf("%d records are more than a file can hold", opts.Records)
		}
	}
	return nil
}
