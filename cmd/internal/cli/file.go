package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// WriteFile writes to the file at path what write does. A file is never found half-written: it
// is made under another name beside path, and renamed. What is no regular file, such as
// /dev/null or a pipe, is written to as it is, and stays what it is.
func WriteFile(path string, write func(io.Writer) error) error {
	return explain(path, writeFile(path, write))
}

// CheckWrite returns the error that WriteFile would end with where a file cannot be made at
// path, for those who would rather know before they make what is to be in it.
func CheckWrite(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("write %s: it is a folder; name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return nil
	}
	partial := partialName(path)
	defer os.Remove(partial)
	return explain(path, writeTo(partial, func(io.Writer) error { return nil }))
}

// explain makes an error of one that names another file.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	var p *os.PathError
	var l *os.LinkError
	switch { // the message has the path already
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return fmt.Errorf("write %s: %w", path, err)
}

func writeFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeTo(path, write)
	}
	partial := partialName(path)
	err := writeTo(partial, write)
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		os.Remove(partial)
	}
	return err
}

func partialName(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.partial", filepath.Base(path), os.Getpid()))
}

func writeTo(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// EndsIn says, for Usage, that the name of a file ends in none of the endings.
func EndsIn(flag, name string, endings ...string) []string {
	if slices.Contains(endings, strings.ToLower(filepath.Ext(name))) {
		return nil
	}
	return []string{fmt.Sprintf("%s %q: its name must end in %s", flag, name, strings.Join(endings, " or "))}
}
