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

// Extents returns the structures that Open read and the contiguous data, by offset.
// Chunks and their indexes, free space and unused room are not listed.
func (f *File) Extents() []Extent { return slices.Clone(f.extents) }

// tidyExtents sorts by offset and drops what is listed twice.
func tidyExtents(list []Extent) []Extent {
	slices.SortFunc(list, func(a, b Extent) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.What, b.What))
	})
	return slices.Clip(slices.Compact(list))
}
