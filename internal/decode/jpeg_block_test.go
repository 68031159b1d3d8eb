package decode

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// randomTable returns a table of a complete or incomplete random code.
func randomTable(t *testing.T, rng *rand.Rand, ac bool) *huffTable {
	t.Helper()
	for {
		var counts [16]byte
		n, room := 0, 1
		for i := range counts {
			room *= 2
			c := rng.IntN(min(room, 40) + 1)
			if i < 3 {
				c = rng.IntN(min(room, 2) + 1)
			}
			c = min(c, 256-n, room)
			counts[i], room, n = byte(c), room-c, n+c
		}
		symbols := make([]byte, n)
		for i := range symbols {
			symbols[i] = byte(rng.IntN(12))
			if ac {
				symbols[i] = []byte{0, 0xF0, byte(rng.IntN(256)), byte(rng.IntN(4)<<4 | rng.IntN(6))}[rng.IntN(4)]
			}
		}
		tab := new(huffTable)
		if tab.build(&counts, symbols, ac) {
			return tab
		}
	}
}

// decoded is what came of one block.
type decoded struct {
	block   [64]int16
	pred    int32
	any, ok bool
	reader  bitReader
}

// TestBlocksOfRandomBits decodes noise, with bytes 0xFF and markers in it, by random tables:
// the kernel and the loops agree on every block, and on where they stand behind it.
func TestBlocksOfRandomBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		dc, ac := randomTable(t, rng, false), randomTable(t, rng, true)
		data := make([]byte, 8+rng.IntN(600))
		for i := range data {
			data[i] = byte(rng.Uint32())
			if rng.IntN(20) == 0 {
				data[i] = 0xFF
			}
			if i > 0 && data[i-1] == 0xFF && rng.IntN(30) > 0 {
				data[i] = 0
			}
		}
		all := func() (list []decoded) {
			var r bitReader
			r.start(data, 0)
			for d := (decoded{ok: true}); d.ok && !r.overrun() && len(list) < 200; list = append(list, d) {
				d.block = [64]int16{}
				d.any, d.ok = r.sequential(&d.block, dc, ac, &d.pred)
				d.reader = r
			}
			return list
		}
		fast := all()
		loopsAlone(t, func() {
			for i, want := range all() {
				if i >= len(fast) {
					t.Fatalf("the kernel stopped at block %d", i)
				}
				compareBlocks(t, i, fast[i], want)
			}
		})
	}
}

func compareBlocks(t *testing.T, i int, got, want decoded) {
	t.Helper()
	if got.ok != want.ok || got.reader.overrun() != want.reader.overrun() {
		t.Fatalf("block %d: ok %v, overrun %v; want %v, %v", i, got.ok, got.reader.overrun(), want.ok, want.reader.overrun())
	}
	if !want.ok || want.reader.overrun() {
		return // what an error leaves is of no use
	}
	if got.block != want.block || got.pred != want.pred {
		t.Fatalf("block %d: %v, want %v", i, got.block, want.block)
	}
	if !got.any && slices.ContainsFunc(got.block[1:], func(v int16) bool { return v != 0 }) {
		t.Fatalf("block %d: any is false for %v", i, got.block)
	}
	if a, b := rest(got.reader), rest(want.reader); a != b {
		t.Fatalf("block %d: the next bits are %064b, want %064b", i, a, b)
	}
}

// rest returns the next 64 bits.
func rest(r bitReader) uint64 { return uint64(r.bits(32))<<32 | uint64(r.bits(32)) }
