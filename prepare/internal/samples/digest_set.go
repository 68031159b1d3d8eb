package samples

import (
	"bytes"
	"encoding/binary"
	"math"
)

// DigestSet is a set of digests, each with the position of its sample, in 256 tables by first byte. Each table grows
// on its own, so growing never takes the memory of the whole set a second time. A digest takes 21 to 43 bytes.
// Digests are compared by their first 96 bits: among 10^9 samples, two have equal bits by chance in one of 10^11
// runs. The zero value is empty.
type DigestSet struct {
	tables [256]digestTable
	zero   *int64 // position of the digest of zero bytes: a table takes that for a free place
}

// digestTable is a hash table with open addressing. Digests are random, so some of their bytes are used as the hash.
type digestTable struct {
	places []place // a power of two of them; at most three quarters are taken
	n      int
}

// place is the first bytes of a digest, followed by a position.
type place [16]byte

// known is how many bytes of a digest a place has. The other bytes of the place are the position.
const known = 12

// Unplaced is a position that is too large for a DigestSet to keep.
const Unplaced = math.MaxUint32

// Find returns the position that d was added with, if it is in the set.
func (s *DigestSet) Find(d Digest) (at int64, ok bool) {
	if isZero(d[:known]) {
		if s.zero == nil {
			return 0, false
		}
		return *s.zero, true
	}
	t := &s.tables[d[0]]
	if len(t.places) == 0 {
		return 0, false
	}
	return t.places[t.find(d[:])].position(d)
}

// position returns the position of d, if the place holds d.
func (p *place) position(d Digest) (at int64, ok bool) {
	return int64(binary.LittleEndian.Uint32(p[known:])), bytes.Equal(p[:known], d[:known])
}

// Add adds d with its position. If the set has d already, Add returns the position with which d was added.
func (s *DigestSet) Add(d Digest, at int64) (before int64, added bool) {
	if before, ok := s.Find(d); ok {
		return before, false
	}
	at = min(at, Unplaced)
	if isZero(d[:known]) {
		s.zero = &at
		return at, true
	}
	s.tables[d[0]].add(d, uint32(at))
	return at, true
}

func isZero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }

func (t *digestTable) add(d Digest, at uint32) {
	if 4*(t.n+1) > 3*len(t.places) {
		t.grow()
	}
	p := &t.places[t.find(d[:])]
	copy(p[:], d[:known])
	binary.LittleEndian.PutUint32(p[known:], at)
	t.n++
}

// find returns the place of d, or the free one where it belongs.
func (t *digestTable) find(d []byte) uint64 {
	mask := uint64(len(t.places) - 1)
	i := binary.LittleEndian.Uint64(d[1:]) & mask
	for !bytes.Equal(t.places[i][:known], d[:known]) && !isZero(t.places[i][:known]) {
		i = (i + 1) & mask
	}
	return i
}

func (t *digestTable) grow() {
	old := t.places
	t.places = make([]place, max(8, 2*len(old)))
	for _, p := range old {
		if !isZero(p[:known]) {
			t.places[t.find(p[:])] = p
		}
	}
}
