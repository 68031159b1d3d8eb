package mmapds

import (
	"fmt"
	"math/bits"
	"sort"
	"sync"

	"github.com/penstock/penstock/store"
)

// live is the records of a dataset that are not deleted, by the places at which they are stored. Finding one looks at
// one place in memory where none is deleted around it, and at the bits of its neighbors otherwise.
type live struct {
	n, stored int
	words     []uint64  // stored record i is bit i%64 of word i/64
	before    []int     // records before each block of words, and all of them
	firsts    []int     // the place of each record that is a multiple of 64, and the end of the last one
	scratch   sync.Pool // of *[]int
}

// The stored records of a block; and how far apart two entries of firsts are at most for the words between them to be
// looked at one by one.
const (
	blockWords = 8
	nearby     = 64 * blockWords
)

// newLive returns the records of files that are not deleted; nil if all are.
func newLive(files *store.Dataset) (*live, error) {
	m := files.Manifest
	if m == nil || m.Deleted == nil {
		return nil, nil
	}
	gone, err := m.Deleted.Words(m.Records)
	if err != nil {
		return nil, err
	}
	l := &live{}
	for _, r := range rangesOf(m, files.Split) {
		l.add(gone, int(r[0]), int(r[1]))
	}
	l.index()
	if l.n == 0 {
		return nil, fmt.Errorf("all records of the split %q are deleted", files.Split)
	}
	return l, nil
}

// rangesOf returns where the records of a split are stored; "" is all.
func rangesOf(m *store.Manifest, split string) [][2]int64 {
	for _, s := range m.Splits {
		if s.Name == split {
			return s.Ranges
		}
	}
	return [][2]int64{{0, m.Records}}
}

// add appends stored records [a, b) of those of which some are gone.
func (l *live) add(gone []uint64, a, b int) {
	for a < b {
		n := min(64-a%64, 64-l.stored%64, b-a)
		word := ^gone[a/64] >> (a % 64) & (^uint64(0) >> (64 - n))
		if l.stored%64 == 0 {
			l.words = append(l.words, 0)
		}
		l.words[l.stored/64] |= word << (l.stored % 64)
		a, l.stored = a+n, l.stored+n
	}
}

// index makes before and firsts.
func (l *live) index() {
	for k, w := range l.words {
		if k%blockWords == 0 {
			l.before = append(l.before, l.n)
		}
		ones := bits.OnesCount64(w)
		if next := 64 * len(l.firsts); next < l.n+ones {
			l.firsts = append(l.firsts, 64*k+selected(w, next-l.n))
		}
		l.n += ones
	}
	l.before, l.firsts = append(l.before, l.n), append(l.firsts, l.stored)
}

// place returns where a record is stored.
func (l *live) place(i int) int {
	first, end, rest := l.firsts[i/64], l.firsts[i/64+1], i%64
	switch {
	case end-first == 64: // all of them are records
		return first + rest
	case end-first < nearby:
		return l.after(first, rest)
	}
	from, to := first/64/blockWords, (end-1)/64/blockWords
	block := from + sort.Search(to-from, func(d int) bool { return l.before[from+d+1] > i })
	return l.after(64*blockWords*block, i-l.before[block])
}

// after returns the place that follows n records from a place on.
func (l *live) after(place, n int) int {
	at := place / 64
	for w := l.words[at] &^ (1<<(place%64) - 1); ; w = l.words[at] {
		ones := bits.OnesCount64(w)
		if n < ones {
			return 64*at + selected(w, n)
		}
		n, at = n-ones, at+1
	}
}

// selected returns the place of the bit that is set after k others.
func selected(w uint64, k int) (at int) {
	for half := 32; half > 0; half /= 2 {
		if n := bits.OnesCount64(w & (1<<half - 1)); k >= n {
			k, at, w = k-n, at+half, w>>half
		}
	}
	return at
}

// number returns the record that is stored at a place, or would be if it were not deleted.
func (l *live) number(place int) int {
	at := place / 64
	n := l.before[at/blockWords]
	for k := at / blockWords * blockWords; k < at; k++ {
		n += bits.OnesCount64(l.words[k])
	}
	return n + bits.OnesCount64(l.words[at]&(1<<(place%64)-1))
}

// run returns where record a is stored, and how many records up to b follow it one after the other.
func (l *live) run(a, b int) (place, n int) {
	place = l.place(a)
	for at := place; n < b-a && at < l.stored; {
		ones := bits.TrailingZeros64(^(l.words[at/64] >> (at % 64)))
		n, at = n+ones, at+ones
		if at%64 != 0 || ones == 0 {
			break
		}
	}
	return place, min(n, b-a)
}

// each calls f with the places of each run of records [a, b), until it fails.
func (l *live) each(a, b int, f func(first, end int) error) error {
	if l == nil {
		return f(a, b)
	}
	for a < b {
		place, n := l.run(a, b)
		if err := f(place, place+n); err != nil {
			return err
		}
		a += n
	}
	return nil
}

// one returns the places of records [a, b) if they are stored one after the other.
func (l *live) one(a, b int) (first, end int, ok bool) {
	if l == nil || a == b {
		return a, b, true
	}
	place, n := l.run(a, b)
	return place, place + n, n == b-a
}

// translated calls f with where records are stored.
func (l *live) translated(field string, records []int, f func(places []int) error) error {
	if l == nil {
		return f(records)
	}
	places, _ := l.scratch.Get().(*[]int)
	if places == nil {
		places = new([]int)
	}
	defer l.scratch.Put(places)
	*places = (*places)[:0]
	for _, i := range records {
		if uint(i) >= uint(l.n) {
			return checkRange(field, i, i+1, l.n)
		}
		*places = append(*places, l.place(i))
	}
	return f(*places)
}
