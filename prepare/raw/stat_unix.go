//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package raw

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// statter looks up local files. It keeps the folder of the last file open, since the system finds a name in an open
// folder in half the time of a path.
type statter struct {
	root string
	dir  string // folder that is open, relative to root
	open *os.File
	st   unix.Stat_t
}

// stat returns the times of a file, following links. For a link that leads nowhere it returns the times of the
// link: such a sample cannot be read, and preparing it reports which one it is.
func (s *statter) stat(name string) (times, error) {
	dir, base := "", name
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		dir, base = name[:at], name[at+1:]
	}
	// Records are sorted by folder, so most files are in the folder of the file before.
	if s.open == nil || dir != s.dir {
		s.close()
		f, err := os.Open(filepath.Join(s.root, dir))
		if err != nil {
			return times{}, err
		}
		s.dir, s.open = dir, f
	}
	err := s.look(base, 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = s.look(base, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return times{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return times{s.st.Size, s.st.Mtim.Nano(), s.st.Ctim.Nano()}, nil
}

// look calls fstatat, again if a signal interrupts it.
func (s *statter) look(name string, flags int) error {
	for {
		if err := unix.Fstatat(int(s.open.Fd()), name, &s.st, flags); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (s *statter) close() {
	if s.open != nil {
		_ = s.open.Close() // it was only read
	}
}
