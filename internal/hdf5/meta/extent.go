package meta

import (
	"cmp"
	"slices"
)

// Extent is a piece of the file with one meaning.
type Extent struct {
	Offset int64
	Size   int64
	What   string // "superblock", "object header", "local heap", "data", ...
}

// tidyExtents sorts extents by offset and drops extents that are listed twice.
func tidyExtents(list []Extent) []Extent {
	slices.SortFunc(list, func(a, b Extent) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.What, b.What))
	})
	return slices.Clip(slices.Compact(list))
}
