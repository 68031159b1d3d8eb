//go:build !unix && !windows

package rawcache

import (
	"errors"
	"os"
)

// Kinds of locks.
const (
	shared = iota
	exclusive
)

// lock: such systems have no locks that end with the process, so that nothing is removed to make room.
func lock(_ *os.File, kind int) error {
	if kind == exclusive {
		return errors.ErrUnsupported
	}
	return nil
}
