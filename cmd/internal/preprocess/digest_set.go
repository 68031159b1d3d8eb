package preprocess

import "encoding/binary"

// digestSet is a set of digests in 256 tables, by their first byte, each of which grows by itself: so
// growing never takes the memory of the whole a second time. A digest takes 21 to 43 bytes. The zero
// value is empty.
type digestSet struct {
	tables [256]digestTable
	zero   bool // the digest of zero bytes is in it: a table takes that for a free place
}

// digestTable is a hash table with open addressing. Digests are random, so that their bytes are
// hash enough.
type digestTable struct {
	places []digest // a power of two of them; at most three quarters are taken
	n      int
}

// has reports whether d is in the set.
func (s *digestSet) has(d digest) bool {
	if d == (digest{}) {
		return s.zero
	}
	t := &s.tables[d[0]]
	return len(t.places) > 0 && t.places[t.find(d)] == d
}

// add adds d and reports whether it is new.
func (s *digestSet) add(d digest) bool {
	if d == (digest{}) {
		added := !s.zero
		s.zero = true
		return added
	}
	return s.tables[d[0]].add(d)
}

func (t *digestTable) add(d digest) bool {
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
func (t *digestTable) find(d digest) uint64 {
	mask := uint64(len(t.places) - 1)
	i := binary.LittleEndian.Uint64(d[1:]) & mask
	for t.places[i] != d && t.places[i] != (digest{}) {
		i = (i + 1) & mask
	}
	return i
}

func (t *digestTable) grow() {
	old := t.places
	t.places = make([]digest, max(8, 2*len(old)))
	for _, d := range old {
		if d != (digest{}) {
			t.places[t.find(d)] = d
		}
	}
}
