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

// ReadFile returns the content of a regular file that an option names, or of the pipe that a shell
// opens for <(COMMAND), of at most 16 MiB. The limit keeps a wrong name, such as the path of a
// dataset, from filling the memory. The error does not name the path; the caller names the option
// and the path.
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

// WriteFile writes the output of write to the file at path. No reader finds the file half-written:
// it is created beside path under another name, and renamed. What is no regular file, such as
// /dev/null or a pipe that another process reads, is written to in place, since renaming would
// replace it.
func WriteFile(path string, write func(io.Writer) error) error {
	return explain(path, writeFile(path, write))
}

// CheckWrite returns the error that WriteFile would end with if no file can be created at path. It
// lets a command fail before hours of work and not after them.
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

// explain names path in an error. The cause is taken out of os.PathError and os.LinkError, which
// name the temporary file that the user does not know.
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

// writeFile is WriteFile with errors that may name the temporary file.
func writeFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) // without a reader of the pipe, an error and no endless wait
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

// writePartial writes to a new file beside path, under a name that nobody can guess, so that no
// other user can place a link there first. The caller closes folder. After an error the new file is
// removed.
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

// EndsIn returns the problem, for Usage, of a file name that ends in none of the endings.
func EndsIn(flag, name string, endings ...string) []string {
	if slices.Contains(endings, strings.ToLower(filepath.Ext(name))) {
		return nil
	}
	return []string{fmt.Sprintf("%s %q: its name must end in %s", flag, name, strings.Join(endings, " or "))}
}
