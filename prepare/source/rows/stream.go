package rows

import (
	"context"
	"iter"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// Stream is a File that is read from front to back. Each pass opens it anew, and between passes it is closed, as
// there may be thousands of files.
type Stream struct {
	Ctx     context.Context
	Root    *vfs.Root
	Path    string
	List    []Column // see File.Columns
	Samples int64    // see File.Count

	// Read yields the rows from number first on, until yield returns false. An error ends the file.
	Read func(s *source.Stream, first int64, yield func(Row, error) bool) error
}

// Columns implements File.
func (f *Stream) Columns() []Column { return f.List }

// Count implements File.
func (f *Stream) Count() int64 { return f.Samples }

// Close implements File.
func (f *Stream) Close() error { return nil }

// Rows implements File.
func (f *Stream) Rows(first int64) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		s, err := source.OpenStream(f.Ctx, f.Root, f.Path)
		if err != nil {
			yield(nil, source.WithoutPath(err))
			return
		}
		defer s.Close()
		if err := f.Read(s, first, yield); err != nil {
			yield(nil, err)
		}
	}
}
