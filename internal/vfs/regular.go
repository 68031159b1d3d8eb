package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNotRegular is the error for a path that is not a regular file.
var ErrNotRegular = errors.New("not a file")

// NotRegular returns the error of a file with that mode, nil of a regular one.
func NotRegular(m fs.FileMode) error {
	if m.IsRegular() {
		return nil
	}
	return fmt.Errorf("is %s, %w", Describe(m), ErrNotRegular)
}

// Describe says what a file with that mode is that is not a regular one.
func Describe(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
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

// regular returns the error of an open file that is not a regular one.
func regular(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := NotRegular(info.Mode()); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return nil
}

// OpenRegular opens a regular file, wherever links lead. It does not wait.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, openFile, 0)
	if err != nil {
		return nil, err
	}
	if err := regular(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenFolder opens a folder to list it. It does not wait.
func OpenFolder(path string) (*os.File, error) { return os.OpenFile(path, openFolder, 0) }
