package raw

import (
	"io/fs"
)

// times is the size of a file in bytes, and its times of modification and of change in nanoseconds.
type times struct{ size, modified, changed int64 }

func timesOf(info fs.FileInfo) times {
	return times{info.Size(), info.ModTime().UnixNano(), changedAt(info)}
}
