package source

import (
	"strings"

	"github.com/penstock/penstock/internal/vfs"
)

// recordsMark stands between the path of a source and where its records are, as in demos.hdf5::data/*[:].
const recordsMark = "::"

// SplitRecords divides the path or URL of a source from where its records are, see package unit; records is "" if the
// path names none, or a file of that name exists.
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

// WithRecords returns a path that SplitRecords divides.
func WithRecords(path, records string) string {
	if records == "" {
		return path
	}
	return path + recordsMark + records
}
