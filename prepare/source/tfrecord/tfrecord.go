// Package tfrecord reads TFRecord files of tf.train.Example and tf.train.SequenceExample, plain or compressed.
//
// A file is a sequence of frames (frame.go), each with a record (example.go). A wrong checksum of a record makes
// one bad sample. A wrong checksum of a length ends the file, as nobody knows where the next frame begins. Files
// have neither an index nor a schema, so [Open] goes through all records once, and package rows finds the fields.
//
// The protocol buffers are parsed here: a few small messages need no generated code, and values go to package rows
// as parts of the record's memory. Only numbers are copied.
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

// Open reads all records once, to find their features and their number.
func Open(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	names, err := source.FilesOf(root, path, "tfrecord")
	if err != nil {
		return nil, err
	}
	return rows.Open(ctx, root, path, names, rows.Format{Kind: "tfrecord", Unit: "records", Open: open}, opts, selection)
}

// open returns a file whose rows are counted later, as a TFRecord has no index.
func open(ctx context.Context, root *vfs.Root, path string) (rows.File, error) {
	s, err := source.OpenStream(ctx, root, path) // only to check now that it exists
	if err != nil {
		return nil, err
	}
	return &rows.Stream{Ctx: ctx, Root: root, Path: path, Samples: -1, Read: read}, s.Close()
}

// read yields the records of a file from number first on. Skipped records are neither checked nor parsed.
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
