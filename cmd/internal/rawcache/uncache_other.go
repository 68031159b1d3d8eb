//go:build !linux

package rawcache

import "os"

// uncache does nothing: Linux alone drops what it keeps of a file.
func uncache(*os.File) {}
