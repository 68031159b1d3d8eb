//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package raw

import (
	"errors"
	"os"
	"path/filepath"
)

// statter looks at files of this machine.
type statter struct{ root string }

// stat looks at a file, wherever links lead, and at a link that leads nowhere: such a sample cannot be read, and its
// preparation reports which one it is.
func (s *statter) stat(name string) (times, error) {
	path := filepath.Join(s.root, filepath.FromSlash(name))
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		info, err = os.Lstat(path)
	}
	if err != nil {
		return times{}, err
	}
	return timesOf(info), nil
}

func (s *statter) close() {}
