package filter

import (
	"bytes"
	"encoding/binary"
	"hash/adler32"
	"math/rand/v2"
	"testing"
)

var sumLengths = []int{0, 1, 2, 7, 31, 32, 33, 63, 64, 65, 255, 702, 703, 704, 705, 5535, 5536, 5537, 11072, 70_001}

func random(seed, n int) []byte {
	b, rng := make([]byte, n), rand.New(rand.NewPCG(uint64(seed), 1))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// sumData are bytes of which sums are small, large and anything.
func sumData(n int) [][]byte {
	return [][]byte{make([]byte, n), bytes.Repeat([]byte{255}, n), random(n, n)}
}

func TestAdler(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		for _, n := range sumLengths {
			for _, b := range sumData(n) {
				if got, want := Adler32(b), adler32.Checksum(b); got != want {
					t.Errorf("%d bytes: %08x, want %08x", n, got, want)
				}
			}
		}
	})
}

// Sums in blocks are those of libhdf5's loop, word by word.
func TestFletcher32Blocks(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		for _, n := range sumLengths {
			for _, b := range sumData(n) {
				if got, want := Fletcher32(b), fletcherWords(b); got != want {
					t.Errorf("%d bytes: %08x, want %08x", n, got, want)
				}
			}
		}
	})
}

func TestFletcher32(t *testing.T) {
	for text, want := range map[string]uint32{"": 0, "a": 0x61006100, "ab": 0x61626162, "abcde": 0x4ff029c7, "abcdefgh": 0xe1eb9195} {
		if got := Fletcher32([]byte(text)); got != want {
			t.Errorf("%q: %08x, want %08x", text, got, want)
		}
	}
}

func fletcherWords(b []byte) uint32 {
	var s1, s2 uint32
	if len(b)%2 == 1 {
		b = append(bytes.Clone(b), 0)
	}
	for ; len(b) > 0; b = b[2:] {
		s1 += uint32(binary.BigEndian.Uint16(b))
		s1 = s1&0xffff + s1>>16
		s2 += s1
		s2 = s2&0xffff + s2>>16
	}
	return s2<<16 | s1
}

func BenchmarkSums(b *testing.B) {
	data, dst := random(1, 150_528), make([]byte, 150_528)
	for name, f := range map[string]func(){
		"adler":      func() { Adler32(data) },
		"adler32":    func() { adler32.Checksum(data) },
		"fletcher32": func() { Fletcher32(data) },
		"unshuffle2": func() { Unshuffle(dst, data, 2) },
		"unshuffle4": func() { Unshuffle(dst, data, 4) },
		"unshuffle8": func() { Unshuffle(dst, data, 8) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				f()
			}
		})
	}
}
