package mmapds

import (
	"fmt"
	"sync"

	"github.com/penstock/penstock/internal/subset"
	"github.com/penstock/penstock/store"
)

// live maps the records that are not deleted to the places at which they are stored. It never
// changes after Open; scratch is memory for single calls.
type live struct {
	*subset.Index
	n, stored int       // records that are not deleted, and all that are stored in the split
	scratch   sync.Pool // of *[]int
}

// newLive returns the live records of files, or nil if no record is deleted: then numbers need no
// translation.
func newLive(files *store.Dataset) (*live, error) {
	m := files.Manifest
	if m == nil || m.Deleted == nil {
		return nil, nil
	}
	gone, err := m.Deleted.Words(m.Records)
	if err != nil {
		return nil, err
	}
	l, words := &live{}, []uint64(nil)
	for _, r := range rangesOf(m, files.Split) {
		words = l.add(words, gone, int(r[0]), int(r[1]))
	}
	l.Index = subset.New(words)
	if l.n = l.Len(); l.n == 0 {
		return nil, fmt.Errorf("all records of the split %q are deleted", files.Split)
	}
	return l, nil
}

// rangesOf returns the stored ranges of a split; "" is the whole dataset.
func rangesOf(m *store.Manifest, split string) [][2]int64 {
	for _, s := range m.Splits {
		if s.Name == split {
			return s.Ranges
		}
	}
	return [][2]int64{{0, m.Records}}
}

// add appends the bits of stored records [a, b) to words, without deleted ones. gone has a bit for
// each deleted record. It works on words of 64 records, since a dataset may have billions.
func (l *live) add(words, gone []uint64, a, b int) []uint64 {
	for a < b {
		n := min(64-a%64, 64-l.stored%64, b-a)
		word := ^gone[a/64] >> (a % 64) & (^uint64(0) >> (64 - n))
		if l.stored%64 == 0 {
			words = append(words, 0)
		}
		words[l.stored/64] |= word << (l.stored % 64)
		a, l.stored = a+n, l.stored+n
	}
	return words
}

// each calls f with the stored places of each run of records [a, b), until f fails.
func (l *live) each(a, b int, f func(first, end int) error) error {
	if l == nil {
		return f(a, b)
	}
	for a < b {
		place, n := l.Run(a, b)
		if err := f(place, place+n); err != nil {
			return err
		}
		a += n
	}
	return nil
}

// one returns the stored places of records [a, b) if they are consecutive.
func (l *live) one(a, b int) (first, end int, ok bool) {
	if l == nil || a == b {
		return a, b, true
	}
	place, n := l.Run(a, b)
	return place, place + n, n == b-a
}

// translated calls f with the stored places of records. The list of places is borrowed memory,
// valid during f.
func (l *live) translated(field string, records []int, f func(places []int) error) error {
	if l == nil {
		return f(records)
	}
	places, _ := l.scratch.Get().(*[]int)
	if places == nil {
		places = new([]int)
	}
	defer l.scratch.Put(places)
	for _, i := range records {
		if uint(i) >= uint(l.n) {
			return checkRange(field, i, i+1, l.n)
		}
	}
	*places = l.AppendAt((*places)[:0], records)
	return f(*places)
}
