package jpeg

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
		if ac && rng.IntN(2) == 0 { // an end of block comes seldom, and by the longest code
			for i := range n - 1 {
				symbols[i] = max(symbols[i], 1)
			}
			symbols[n-1] = 0
		}
		tab, kind := new(huffTable), ofFirst
		if ac {
			kind = ofOthers
		}
		if tab.build(&counts, symbols, kind); tab.check() == nil {
			return tab
		}
	}
}

// decoded is the result of decoding some units.
type decoded struct {
	coefs  [3][]int16
	any    [3][]bool
	pred   [3]int32
	ok     bool
	reader bitReader
}

// TestUnitsOfRandomBits decodes noise, with bytes 0xFF and markers in it, by random tables: the
// kernel and the loops agree on every block, and on their position after each few units.
func TestUnitsOfRandomBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		var tables [3][2]*huffTable
		for i := range tables {
			tables[i] = [2]*huffTable{randomTable(t, rng, false), randomTable(t, rng, true)}
		}
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
		units := 1 + rng.IntN(4)
		all := func() (list []decoded) {
			var r bitReader
			r.start(data, 0)
			for d := (decoded{ok: true}); d.ok && !r.overrun() && len(list) < 100; list = append(list, d) {
				d.read(&r, &tables, units)
			}
			return list
		}
		fast := all()
		loopsAlone(t, func() {
			for i, want := range all() {
				if i >= len(fast) {
					t.Fatalf("the kernel stopped before units %d", i)
				}
				compareUnits(t, i, &fast[i], &want)
			}
		})
	}
}

// read decodes units of three blocks, the second of them of the first component too.
func (d *decoded) read(r *bitReader, tables *[3][2]*huffTable, units int) {
	var blocks []unitBlock
	for i, c := range []int{0, 0, 1, 2} {
		step := []int{2, 2, 1, 1}[i]
		if i != 1 {
			d.coefs[c], d.any[c] = make([]int16, 64*step*units), make([]bool, step*units)
		}
		blocks = append(blocks, unitBlock{
			coefs: d.coefs[c], any: d.any[c], dc: tables[c][0], ac: tables[c][1],
			pred: &d.pred[c], place: i & 1 &^ (i >> 1), step: step,
		})
	}
	d.ok = r.units(blocks, units)
	d.reader = *r
}

func compareUnits(t *testing.T, i int, got, want *decoded) {
	t.Helper()
	if got.ok != want.ok || got.reader.overrun() != want.reader.overrun() {
		t.Fatalf("units %d: ok %v, overrun %v; want %v, %v", i, got.ok, got.reader.overrun(), want.ok, want.reader.overrun())
	}
	if !want.ok || want.reader.overrun() {
		return // what an error leaves is of no use
	}
	if got.pred != want.pred {
		t.Fatalf("units %d: sums %v, want %v", i, got.pred, want.pred)
	}
	for c := range got.coefs {
		if !slices.Equal(got.coefs[c], want.coefs[c]) {
			t.Fatalf("units %d, component %d: %v, want %v", i, c, got.coefs[c], want.coefs[c])
		}
		for b, any := range got.any[c] {
			if !any && slices.ContainsFunc(got.coefs[c][64*b+1:64*b+64], func(v int16) bool { return v != 0 }) {
				t.Fatalf("units %d, component %d: block %d has more than a first coefficient", i, c, b)
			}
		}
	}
	if a, b := rest(got.reader), rest(want.reader); a != b {
		t.Fatalf("units %d: the next bits are %064b, want %064b", i, a, b)
	}
}

// rest returns the next 64 bits.
func rest(r bitReader) uint64 { return uint64(r.bits(32))<<32 | uint64(r.bits(32)) }
