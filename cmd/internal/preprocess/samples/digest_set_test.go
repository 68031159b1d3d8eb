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
	if s.Has(Digest{}) || s.Has(numbered(1)) || !s.Add(Digest{}) || s.Add(Digest{}) || !s.Has(Digest{}) {
		t.Error("the digest of zeros")
	}
	const n = 100_000
	for round := range 2 {
		for i := range n {
			if d := numbered(i); s.Has(d) != (round == 1) || s.Add(d) != (round == 0) || !s.Has(d) {
				t.Fatalf("round %d: digest %d", round, i)
			}
		}
	}
	if s.Has(numbered(n)) {
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
		s.Add(numbered(i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := float64(after.HeapAlloc-before.HeapAlloc) / n; each < 16 || each > 44 {
		t.Errorf("%.1f bytes a digest, want 21 to 43", each)
	}
	runtime.KeepAlive(s)
}
