//go:build !unix

package part

import "io/fs"

// device is 0: such systems have no number for it.
func device(fs.FileInfo) uint64 { return 0 }
