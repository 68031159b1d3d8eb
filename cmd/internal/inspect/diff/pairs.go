package diff

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// What makes two records a pair, see Comparison.By.
const (
	byPlace    = "stored place" // for generations of one dataset: a record keeps its place
	byName     = "source name"  // for other datasets, if names are unique in both
	byPosition = "position"     // otherwise
)

// Unmatched are the records that only one of the datasets has.
type Unmatched struct {
	Records int64    `json:"records"`
	First   []Record `json:"first"` // at most mostNamed
}

// Record is a record by its number and, if the dataset has names, its source name.
type Record struct {
	Number int64  `json:"record"`
	Name   string `json:"name,omitempty"`
}

// mostNamed is the number of unmatched records that are listed.
const mostNamed = 10

// run is n consecutive pairs: records a, a+1, ... of one side and b, b+1, ... of the other. first
// is the number of pairs in earlier runs.
type run struct{ a, b, n, first int } // first counts the pairs before it

// pairs lists the records that correspond, in the order of the first dataset. Consecutive pairs are
// one run, so a comparison of equal datasets needs no memory per record.
type pairs struct {
	runs []run
	n    int
}

// add appends n pairs, and joins them to the last run if they continue it.
func (p *pairs) add(a, b, n int) {
	if k := len(p.runs) - 1; k >= 0 && p.runs[k].a+p.runs[k].n == a && p.runs[k].b+p.runs[k].n == b {
		p.runs[k].n += n
	} else if n > 0 {
		p.runs = append(p.runs, run{a, b, n, p.n})
	}
	p.n += n
}

// appendTo appends the record numbers of pairs [from, to) to a and b.
func (p *pairs) appendTo(a, b []int, from, to int) ([]int, []int) {
	k := sort.Search(len(p.runs), func(k int) bool { return p.runs[k].first+p.runs[k].n > from })
	for i := from; i < to; i++ {
		if i == p.runs[k].first+p.runs[k].n {
			k++
		}
		r := p.runs[k]
		a, b = append(a, r.a+i-r.first), append(b, r.b+i-r.first)
	}
	return a, b
}

// match finds the pairs. old and later are the manifests of two generations of one dataset, or nil.
func (c *Comparison) match(ctx context.Context, old, later *store.Manifest) error {
	a, ofA := c.a.records.(*mmapds.Dataset)
	b, ofB := c.b.records.(*mmapds.Dataset)
	if old != nil && ofA && ofB {
		c.By = byPlace
		return c.matchPlaces(ctx, a, b, int(write.Shared(old, later)))
	}
	c.By = byName
	if done, err := c.matchNames(ctx); done || err != nil {
		return err
	}
	c.By = byPosition
	both := min(c.a.Len(), c.b.Len())
	c.pairs.add(0, 0, both)
	for i := both; i < c.a.Len() || i < c.b.Len(); i++ {
		if err := c.unmatched(ctx, i < c.a.Len(), i); err != nil {
			return err
		}
	}
	return nil
}

// matchPlaces pairs records of two generations, like the merge of two sorted lists: places ascend
// with the record numbers. Places are the same records in both generations only below shared; after
// an append in both branches of a restored dataset, equal places have different records.
func (c *Comparison) matchPlaces(ctx context.Context, a, b *mmapds.Dataset, shared int) error {
	place := func(ds *mmapds.Dataset, i int) int {
		if i < ds.Len() {
			return ds.Stored(i)
		}
		return math.MaxInt
	}
	for i, j := 0, 0; i < a.Len() || j < b.Len(); {
		x, y := place(a, i), place(b, j)
		if x == y && x < shared {
			c.pairs.add(i, j, 1)
			i, j = i+1, j+1
			continue
		}
		var err error
		if x <= y {
			err = c.unmatched(ctx, true, i)
			i++
		} else {
			err = c.unmatched(ctx, false, j)
			j++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// matchNames pairs records with equal source names. It gives up, with done false, if a record has
// no name, if two records of a side share one, or if no name occurs on both sides.
func (c *Comparison) matchNames(ctx context.Context) (done bool, err error) {
	if same, err := c.sameNames(ctx); same || err != nil {
		return same, err
	}
	const none = -1
	numbers := make(map[string]int, c.a.Len()) // in a, by name
	for i := range c.a.Len() {
		name, err := c.a.SourceName(ctx, i)
		if _, twice := numbers[name]; err != nil || twice || name == "" {
			return false, err
		}
		numbers[name] = i
	}
	to := slices.Repeat([]int{none}, c.a.Len()) // in b, by the number in a
	found, only := 0, make(map[string]bool)
	for j := range c.b.Len() {
		name, err := c.b.SourceName(ctx, j)
		if err != nil || name == "" {
			return false, err
		}
		i, there := numbers[name]
		switch {
		case there && to[i] != none, only[name]:
			return false, nil
		case there:
			to[i] = j
			found++
		default:
			only[name] = true
		}
	}
	if found == 0 {
		return false, nil
	}
	matched := make([]bool, c.b.Len())
	for i, j := range to {
		if j == none {
			if err := c.unmatched(ctx, true, i); err != nil {
				return false, err
			}
			continue
		}
		c.pairs.add(i, j, 1)
		matched[j] = true
	}
	for j, ok := range matched {
		if !ok {
			if err := c.unmatched(ctx, false, j); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// sameNames pairs all records if both sides have the same names in the same order. This is the
// common case, and needs no memory.
func (c *Comparison) sameNames(ctx context.Context) (bool, error) {
	if c.a.Len() != c.b.Len() {
		return false, nil
	}
	for i := range c.a.Len() {
		x, err := c.a.SourceName(ctx, i)
		if err != nil || x == "" {
			return false, err
		}
		if y, err := c.b.SourceName(ctx, i); err != nil || x != y {
			return false, err
		}
	}
	c.pairs.add(0, 0, c.a.Len())
	return true, nil
}

// unmatched counts a record that only side a has (ofA) or only side b.
func (c *Comparison) unmatched(ctx context.Context, ofA bool, i int) error {
	u, s := &c.Added, c.b
	if ofA {
		u, s = &c.Deleted, c.a
	}
	u.Records++
	if len(u.First) == mostNamed {
		return context.Cause(ctx)
	}
	name, err := s.SourceName(ctx, i)
	u.First = append(u.First, Record{int64(i), name})
	return err
}

// span is consecutive records [first, end) of a split.
type span struct {
	first, end int64
	split      string
}

// spansOf returns the spans of all splits in ascending order.
func spansOf(splits []store.Split) (list []span) {
	for _, s := range splits {
		for _, r := range s.Ranges {
			list = append(list, span{r[0], r[1], s.Name})
		}
	}
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	return list
}

// at returns the split of a record, "" for none, and the first later record that may be in another.
func at(list []span, record int64) (split string, end int64) {
	k := sort.Search(len(list), func(k int) bool { return list[k].end > record })
	switch {
	case k == len(list):
		return "", math.MaxInt64
	case list[k].first > record:
		return "", list[k].first
	}
	return list[k].split, list[k].end
}

// sameSplits reports whether both sides have splits of the same names, in the same order, with
// corresponding records. It compares spans, not single records.
func (c *Comparison) sameSplits(a, b []store.Split) bool {
	if !slices.EqualFunc(a, b, func(a, b store.Split) bool { return a.Name == b.Name }) {
		return false
	}
	x, y := spansOf(a), spansOf(b)
	for _, r := range c.pairs.runs {
		for k := int64(0); k < int64(r.n); {
			was, endA := at(x, int64(r.a)+k)
			is, endB := at(y, int64(r.b)+k)
			if was != is {
				return false
			}
			k = min(endA-int64(r.a), endB-int64(r.b))
		}
	}
	return true
}
