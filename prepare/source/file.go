package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/penstock/penstock/internal/vfs"
)

// File is a regular file, by its path. As Data it is the first value.
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

// Bytes returns all bytes, in the memory of buf if they fit.
func (f File) Bytes(buf []byte) ([]byte, error) {
	b, err := f.Root.ReadFile(f.Path, buf[:0], MaxValue)
	return b, WithoutPath(err)
}

// WithoutPath drops the operation and path that package os adds.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Limits of files that are read as a whole, in bytes. They leave room for what people have: a list of 10 million images
// has 600 MB.
const (
	MaxText = 64 << 20 // annotations of an image, names of classes, descriptions of a dataset
	MaxList = 1 << 30  // names of images
)

// ReadJSON reads a file of at most that many bytes, which should be what it is called.
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

// Failed is the Data of a sample that cannot be read, for a reason that is known.
type Failed struct{ Err error }

func (f Failed) Read(v *Values) error {
	v.Make(0, 0)
	return f.Err
}

// ReadAt fills b from offset on.
func ReadAt(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	return err
}
