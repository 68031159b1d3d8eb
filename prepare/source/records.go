package source

import (
	"strings"

	"github.com/penstock/penstock/internal/vfs"
)

// recordsMark separates the path of a source from the declaration of its records, as in demos.hdf5::data/*[:].
const recordsMark = "::"

// SplitRecords divides a path or URL from the declaration of its records, in the notation of package unit. records
// is "" if there is no declaration, or if a file with the whole name exists. A mark after "[" (an IPv6 address such
// as [::1]) or before "/" does not separate.
func SplitRecords(path string) (file, records string) {
	i := strings.LastIndex(path, recordsMark)
	if i <= 0 || i+len(recordsMark) == len(path) || path[i-1] == '[' || strings.HasPrefix(path[i+len(recordsMark):], "/") {
		return path, ""
	}
	if _, err := vfs.Stat(path); err == nil {
		return path, ""
	}
	return path[:i], path[i+len(recordsMark):]
}

// WithRecords joins what SplitRecords divides.
func WithRecords(path, records string) string {
	if records == "" {
		return path
	}
	return path + recordsMark + records
}
