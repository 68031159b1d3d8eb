package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/penstock/penstock/internal/vfs"
)

// File is a regular file, by its path. As Data it has one field, field 0: the content of the file.
type File struct {
	Root *vfs.Root
	Path string
}

// Read implements Data.
func (f File) Read(v *Values) error {
	b, err := f.Bytes(v.Buffer(0))
	v.Keep(0, b)
	return err
}

// Bytes returns the whole content. It reuses the memory of buf if the content fits. A file of more than MaxValue
// bytes is an error.
func (f File) Bytes(buf []byte) ([]byte, error) {
	b, err := f.Root.ReadFile(f.Path, buf[:0], MaxValue)
	return b, WithoutPath(err)
}

// WithoutPath drops the operation and the path that package os adds to errors: callers name the path themselves,
// relative to the source, and a message should have it once.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Limits in bytes of files that are read as a whole. They exist so that a wrong path does not fill the memory, and
// are far above real files: a list of 10 million image names has 600 MB.
const (
	MaxText = 64 << 20 // annotations of an image, class names, descriptions of a dataset
	MaxList = 1 << 30  // lists of image names
)

// ReadJSON decodes a JSON file of at most most bytes into to. what names the expected content for the error.
func ReadJSON(root *vfs.Root, path, what string, most int64, to any) error {
	text, err := root.ReadFile(path, nil, most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("is no %s: %w", what, err)
	}
	return nil
}

// Failed is the Data of a sample that is known to be unreadable before Read. The sample is still yielded, so that
// it is counted and reported like any bad sample.
type Failed struct{ Err error }

// Read returns the error. It sets the first value to no bytes, as v may hold the values of the sample before.
func (f Failed) Read(v *Values) error {
	v.Make(0, 0)
	return f.Err
}

// ReadAt fills b from offset on. Unlike an io.ReaderAt, it returns no error, not even io.EOF, after a full read at
// the end of a file.
func ReadAt(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	return err
}
