//go:build !linux

package hdf5

import "os"

// reserve works on Linux only; elsewhere the writes find that a disk is full.
func reserve(*os.File, int64, int64) error { return nil }
