package write

import (
	"cmp"
	"slices"
	"sort"

	"github.com/penstock/penstock/store"
)

// SplitRange is a range of records [First, End) that belongs to a split. Split is its position in the list of splits.
type SplitRange struct {
	First, End int64
	Split      int
	Name       string
}

// SplitRanges are the ranges of all splits of a dataset, in the order of records.
type SplitRanges []SplitRange

// SplitRangesOf returns the ranges of the splits of a dataset with that many records. A dataset without splits has one
// range, of a split without a name.
func SplitRangesOf(splits []store.Split, records int64) SplitRanges {
	list := SplitRanges{}
	for i, s := range splits {
		for _, r := range s.Ranges {
			list = append(list, SplitRange{r[0], r[1], i, s.Name})
		}
	}
	if len(list) == 0 {
		return SplitRanges{{0, records, 0, ""}}
	}
	slices.SortFunc(list, func(a, b SplitRange) int { return cmp.Compare(a.End, b.End) })
	return list
}

// Of returns the position of the range that a record is in.
func (l SplitRanges) Of(record int64) int {
	return sort.Search(len(l), func(i int) bool { return l[i].End > record })
}
