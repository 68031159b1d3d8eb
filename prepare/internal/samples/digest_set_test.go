package samples

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"testing"
)

// numbered returns a digest like those of contents.
func numbered(i int) (d Digest) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(i))
	sum := sha256.Sum256(b[:])
	copy(d[:], sum[:])
	return d
}

// TestDigestSet adds digests twice, with the one that a table cannot hold.
func TestDigestSet(t *testing.T) {
	var s DigestSet
	has := func(d Digest) bool {
		_, ok := s.Find(d)
		return ok
	}
	if has(Digest{}) || has(numbered(1)) {
		t.Error("an empty set has digests")
	}
	for i, want := range []bool{true, false} {
		if at, added := s.Add(Digest{}, int64(7+i)); added != want || at != 7 || !has(Digest{}) {
			t.Errorf("the digest of zeros: at %d, added %v", at, added)
		}
	}
	const n = 100_000
	for round := range 2 {
		for i := range n {
			d := numbered(i)
			if has(d) != (round == 1) {
				t.Fatalf("round %d: digest %d", round, i)
			}
			if at, added := s.Add(d, int64(i+round)); added != (round == 0) || at != int64(i) || !has(d) {
				t.Fatalf("round %d: digest %d at %d, added %v", round, i, at, added)
			}
		}
	}
	if has(numbered(n)) {
		t.Error("a digest that was not added")
	}
}

// TestDigestSetMemory holds the set to what it says that it takes.
func TestDigestSetMemory(t *testing.T) {
	const n = 1 << 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := new(DigestSet)
	for i := range n {
		s.Add(numbered(i), int64(i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := float64(after.HeapAlloc-before.HeapAlloc) / n; each < 16 || each > 44 {
		t.Errorf("%.1f bytes a digest, want 21 to 43", each)
	}
	runtime.KeepAlive(s)
}
