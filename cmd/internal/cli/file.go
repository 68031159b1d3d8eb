package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/vfs"
)

// ReadFile returns the content of a regular file that an option names, or of the pipe that a shell makes for
// <(COMMAND), of at most 16 MiB. Its error does not name the path.
func ReadFile(path string) ([]byte, error) {
	const most = 16 << 20
	if !strings.HasPrefix(path, "/dev/fd/") {
		return vfs.ReadNamed(path, most)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New("there is no such descriptor")
	}
	defer f.Close()
	return vfs.ReadWhole(f, most)
}

// WriteFile writes the output of write to the file at path. A file is never found half-written:
// it is created next to path under another name, and renamed. Other kinds of files, such as
// /dev/null or a pipe that a process reads, are written to in place.
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
	folder, partial, err := writePartial(path, func(io.Writer) error { return nil })
	if err == nil {
		err = errors.Join(folder.Remove(partial), folder.Close())
	}
	return explain(path, err)
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
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) // a pipe that nobody reads is an error
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	folder, partial, err := writePartial(path, write)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Rename(partial, filepath.Base(path)); err != nil {
		return errors.Join(err, folder.Remove(partial))
	}
	return nil
}

// writePartial writes to a new file next to path, whose name nobody can guess. After an error it is gone.
func writePartial(path string, write func(io.Writer) error) (folder *os.Root, name string, err error) {
	folder, base, err := private.Parent(path)
	if p := (*fs.PathError)(nil); errors.As(err, &p) && errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%w; make the folder %s first", p.Err, filepath.Dir(path))
	}
	if err != nil {
		return nil, "", err
	}
	f, name, err := private.CreateTemp(folder, "."+base+".", 0o666)
	if err != nil {
		return nil, "", errors.Join(err, folder.Close())
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return nil, "", errors.Join(err, folder.Remove(name), folder.Close())
	}
	return folder, name, nil
}

// EndsIn says, for Usage, that the name of a file ends in none of the endings.
func EndsIn(flag, name string, endings ...string) []string {
	if slices.Contains(endings, strings.ToLower(filepath.Ext(name))) {
		return nil
	}
	return []string{fmt.Sprintf("%s %q: its name must end in %s", flag, name, strings.Join(endings, " or "))}
}
