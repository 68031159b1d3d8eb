// Package tfrecord reads TFRecord files of tf.train.Example and tf.train.SequenceExample, also compressed.
//
// A file is frames of a length, its masked CRC32C, the data and their CRC32C. A wrong checksum of data is a bad sample;
// a wrong checksum of a length ends the file, as nobody knows where the next frame begins. Files have no index and no
// schema, so [Open] goes through all records once. The protocol buffers are parsed here: three messages with one field
// each need no library, and values go to package rows without a copy.
package tfrecord

import (
	"context"
	"errors"
	"io"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/rows"
)

// Open goes through all records once, to find their features and their number.
func Open(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	names, err := source.FilesOf(root, path, "tfrecord")
	if err != nil {
		return nil, err
	}
	return rows.Open(ctx, root, path, names, rows.Format{Kind: "tfrecord", Unit: "records", Open: open}, opts, selection)
}

// open returns a file whose rows are counted later: a TFRecord has no index.
func open(ctx context.Context, root *vfs.Root, path string) (rows.File, error) {
	s, err := source.OpenStream(ctx, root, path) // only to check now that it exists
	if err != nil {
		return nil, err
	}
	return &rows.Stream{Ctx: ctx, Root: root, Path: path, Samples: -1, Read: read}, s.Close()
}

// read yields the records of a file from number first on. Skipped records are framed, but not checked or parsed. A
// wrong checksum of the data is the fault of one record; any other error ends the file.
func read(s *source.Stream, first int64, yield func(rows.Row, error) bool) error {
	frames := frames{r: s}
	for i := int64(0); ; i++ {
		var row rows.Row
		b, err := frames.next(i < first)
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, source.ErrValue):
			row = rows.BadRow{Err: err}
		case err != nil:
			return err
		default:
			row = record(b)
		}
		if i >= first && !yield(row, nil) {
			return nil
		}
	}
}
