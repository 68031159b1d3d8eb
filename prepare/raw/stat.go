package raw

import (
	"io/fs"
)

// times are the size of a file, and when it was modified and changed last, in nanoseconds.
type times struct{ size, modified, changed int64 }

func timesOf(info fs.FileInfo) times {
	return times{info.Size(), info.ModTime().UnixNano(), changedAt(info)}
}
