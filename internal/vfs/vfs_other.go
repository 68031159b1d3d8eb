//go:build !linux

package vfs

import (
	"errors"
	"os"
)

var errAgain = errors.ErrUnsupported

// beneath returns nil: files are opened by the [os.Root].
func beneath(*os.Root) *os.File { return nil }

func openBeneath(*os.File, string, int) (int, error) { return -1, errAgain }

// openMember leaves it to a [Root].
func openMember(string, string, int) (*os.File, error) { return nil, errAgain }

// Random does nothing.
func Random(*os.File) {}
