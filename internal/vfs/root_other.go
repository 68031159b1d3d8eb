//go:build !unix

package vfs

import "os"

// openPlain opens a regular file and returns its size.
func (r *Root) openPlain(path string) (*os.File, int64, error) {
	f, err := r.open(path, openFile)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		err = NotRegular(info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
