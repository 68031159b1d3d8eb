package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/penstock/penstock/cmd/internal/vfs"
)

// file is a regular file, by its path. As Data it is the first value.
type file string

// Read implements Data.
func (f file) Read(v *Values) error {
	b, err := f.read(v.Buffer(0))
	v.Keep(0, b)
	return err
}

// read returns all bytes, in the memory of buf if they fit.
func (f file) read(buf []byte) ([]byte, error) {
	if vfs.Mounted(string(f)) {
		b, err := vfs.ReadFile(string(f), buf[:0])
		return b, withoutPath(err)
	}
	r, size, err := openFile(string(f))
	if err != nil {
		return buf[:0], withoutPath(err)
	}
	defer r.Close()
	return readAll(r, size, buf)
}

// readAll reads r, which claims to have that many bytes, or 0 where it does not know.
func readAll(r io.Reader, size int64, buf []byte) ([]byte, error) {
	buf = slices.Grow(buf[:0], int(min(size, maxHint)))
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
			return buf, withoutPath(err)
		}
	}
}

// maxHint bounds what a file's claimed size can make us allocate before a byte was read.
const maxHint = 1 << 30

// withoutPath drops the operation and path that package os adds.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// notRegular is the Data of something that has an image's name but no bytes to read.
type notRegular struct{ mode fs.FileMode }

func (n notRegular) Read(v *Values) error {
	v.Make(0, 0)
	return fmt.Errorf("is %s, not a file", describeMode(n.mode))
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
