package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/penstock/penstock/internal/vfs"
)

// File is a regular file, by its path. As Data it is the first value.
type File string

// Read implements Data.
func (f File) Read(v *Values) error {
	b, err := f.Bytes(v.Buffer(0))
	v.Keep(0, b)
	return err
}

// Bytes returns all bytes, in the memory of buf if they fit.
func (f File) Bytes(buf []byte) ([]byte, error) {
	if vfs.Mounted(string(f)) {
		b, err := vfs.ReadFile(string(f), buf[:0])
		return b, WithoutPath(err)
	}
	r, size, err := openFile(string(f))
	if err != nil {
		return buf[:0], WithoutPath(err)
	}
	defer r.Close()
	if size > MaxValue {
		return buf[:0], fmt.Errorf("has %d bytes, more than %d", size, MaxValue)
	}
	return readAll(r, size, buf)
}

// readAll reads r, which claims to have that many bytes, at most MaxValue, or 0 where it does not know.
func readAll(r io.Reader, size int64, buf []byte) ([]byte, error) {
	buf = slices.Grow(buf[:0], int(size))
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, 512)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF || size > 0 && int64(len(buf)) == size {
			return buf, nil
		}
		if err != nil {
			return buf, WithoutPath(err)
		}
	}
}

// WithoutPath drops the operation and path that package os adds.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// ReadJSON reads a file of at most that many bytes, which should be what it is called.
func ReadJSON(path, what string, most int64, to any) error {
	info, err := vfs.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > most {
		return fmt.Errorf("has %d bytes; at most %d are possible", info.Size(), most)
	}
	text, err := vfs.ReadFile(path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("is no %s: %w", what, err)
	}
	return nil
}

// NotRegular is the Data of something that has an image's name but no bytes to read.
type NotRegular struct{ Mode fs.FileMode }

func (n NotRegular) Read(v *Values) error {
	v.Make(0, 0)
	return fmt.Errorf("is %s, not a file", describeMode(n.Mode))
}

func describeMode(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link that leads nowhere"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
}

// ReadAt fills b from offset on.
func ReadAt(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	return err
}
