package preview

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
)

// pick chooses the records to show, in the order in which they are shown: by class, then by number.
// The choice is a function of the seed, the labels and the options, so that a sheet can be made
// again.
func (s *sheetBuilder) pick(labels []int64) []int {
	n := s.ds.Len()
	count := min(s.opts.Count, n)
	if s.opts.First {
		records := make([]int, count)
		for i := range records {
			records[i] = i
		}
		return records
	}
	rng := rand.New(rand.NewPCG(s.opts.Seed, 0))
	if labels == nil {
		return dataset.Sample(rng, n, count)
	}
	classes := byLabel(labels)
	s.groups = len(classes)
	if s.opts.Even && count > len(classes) {
		count -= count % len(classes)
	}
	records := spread(rng, classes, count)
	slices.SortFunc(records, func(a, b int) int {
		return cmp.Or(cmp.Compare(labels[a], labels[b]), cmp.Compare(a, b))
	})
	return records
}

// byLabel returns the records of each label, the smallest label first.
func byLabel(labels []int64) [][]int {
	groups := make(map[int64][]int)
	for i, v := range labels {
		groups[v] = append(groups[v], i)
	}
	keys := make([]int64, 0, len(groups))
	for v := range groups {
		keys = append(keys, v)
	}
	slices.Sort(keys)
	out := make([][]int, len(keys))
	for i, v := range keys {
		out[i] = groups[v]
	}
	return out
}

// spread draws count records, one of each class in turn, so that the classes differ by at most one
// as long as they last. The order of the classes is random: with fewer pictures than classes, the
// classes are a random choice. It shuffles the lists of classes in place (Fisher and Yates).
func spread(rng *rand.Rand, classes [][]int, count int) []int {
	order := rng.Perm(len(classes))
	out := make([]int, 0, count)
	for round := 0; len(out) < count; round++ {
		for _, c := range order {
			if len(out) == count {
				break
			}
			if list := classes[c]; round < len(list) {
				k := round + rng.IntN(len(list)-round)
				list[round], list[k] = list[k], list[round]
				out = append(out, list[round])
			}
		}
	}
	return out
}

// columns returns the number of pictures in a row. If every class has the same number of pictures,
// a row ends where its class does.
func (s *sheetBuilder) columns(shown int) int {
	const most = 12
	usual := 8
	if s.marked() {
		usual = 4
	}
	switch {
	case s.opts.Columns > 0:
		return min(s.opts.Columns, shown)
	case shown < usual:
		return shown
	case s.groups == 0 || shown%s.groups != 0:
		return usual
	}
	each := shown / s.groups
	for c := most; c >= 5; c-- {
		if each%c == 0 {
			return c
		}
	}
	return usual
}
