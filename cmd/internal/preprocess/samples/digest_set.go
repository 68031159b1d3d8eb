package samples

import "encoding/binary"

// DigestSet is a set of digests in 256 tables, by their first byte, each of which grows by itself: so
// growing never takes the memory of the whole a second time. A digest takes 21 to 43 bytes. The zero
// value is empty.
type DigestSet struct {
	tables [256]digestTable
	zero   bool // the digest of zero bytes is in it: a table takes that for a free place
}

// digestTable is a hash table with open addressing. Digests are random, so that their bytes are
// hash enough.
type digestTable struct {
	places []Digest // a power of two of them; at most three quarters are taken
	n      int
}

// Has reports whether d is in the set.
func (s *DigestSet) Has(d Digest) bool {
	if d == (Digest{}) {
		return s.zero
	}
	t := &s.tables[d[0]]
	return len(t.places) > 0 && t.places[t.find(d)] == d
}

// Add adds d and reports whether it is new.
func (s *DigestSet) Add(d Digest) bool {
	if d == (Digest{}) {
		added := !s.zero
		s.zero = true
		return added
	}
	return s.tables[d[0]].add(d)
}

func (t *digestTable) add(d Digest) bool {
	if 4*(t.n+1) > 3*len(t.places) {
		t.grow()
	}
	i := t.find(d)
	if t.places[i] == d {
		return false
	}
	t.places[i] = d
	t.n++
	return true
}

// find returns the place of d, or the free one where it belongs.
func (t *digestTable) find(d Digest) uint64 {
	mask := uint64(len(t.places) - 1)
	i := binary.LittleEndian.Uint64(d[1:]) & mask
	for t.places[i] != d && t.places[i] != (Digest{}) {
		i = (i + 1) & mask
	}
	return i
}

func (t *digestTable) grow() {
	old := t.places
	t.places = make([]Digest, max(8, 2*len(old)))
	for _, d := range old {
		if d != (Digest{}) {
			t.places[t.find(d)] = d
		}
	}
}
