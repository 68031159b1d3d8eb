//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package raw

import (
	"errors"
	"os"
	"path/filepath"
)

// statter looks up local files.
type statter struct{ root string }

// stat returns the times of a file, following links. For a link that leads nowhere it returns the times of the
// link: such a sample cannot be read, and preparing it reports which one it is.
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
