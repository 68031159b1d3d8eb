// Package tfrecord reads TFRecord files of tf.train.Example and tf.train.SequenceExample, also compressed.
package tfrecord

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/source/column"
	"github.com/penstock/penstock/cmd/internal/source/rows"
)

// Open goes through all records once, to find their features and their number.
func Open(ctx context.Context, path string, opts source.Options, selection []column.Selection) (source.Source, error) {
	names, err := source.FilesOf(path, "tfrecord")
	if err != nil {
		return nil, err
	}
	return rows.Open(ctx, path, names, rows.Format{Kind: "tfrecord", Unit: "records", Open: open}, opts, selection)
}

func open(ctx context.Context, path string) (rows.File, error) {
	s, err := source.OpenStream(ctx, path) // only to know now that it is there
	if err != nil {
		return nil, err
	}
	return &file{ctx, path}, s.Close()
}

// file is a TFRecord file. It is opened for each pass, as there may be thousands of them.
type file struct {
	ctx  context.Context
	path string
}

// Columns implements rows.File.
func (f *file) Columns() []rows.Column { return nil }

// Count implements rows.File.
func (f *file) Count() int64 { return -1 }

// Close implements rows.File.
func (f *file) Close() error { return nil }

// Rows implements rows.File.
func (f *file) Rows(first int64) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		s, err := source.OpenStream(f.ctx, f.path)
		if err != nil {
			yield(nil, source.WithoutPath(err))
			return
		}
		defer s.Close()
		frames := frames{r: s}
		for i := int64(0); ; i++ {
			var row rows.Row
			b, err := frames.next(i < first)
			switch {
			case err == io.EOF:
				return
			case errors.Is(err, source.ErrValue):
				row = rows.BadRow{Err: err}
			case err != nil:
				yield(nil, err)
				return
			default:
				row = record(b)
			}
			if i >= first && !yield(row, nil) {
				return
			}
		}
	}
}
