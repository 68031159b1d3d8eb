package tensor

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func TestDTypeNames(t *testing.T) {
	for d := Bool; int(d) < len(dtypes); d++ {
		got, err := ParseDType(d.String())
		if err != nil || got != d {
			t.Errorf("%v: parsed as %v, %v", d, got, err)
		}
		text, err := json.Marshal(d)
		require.NoError(t, err)
		var back DType
		if err := json.Unmarshal(text, &back); err != nil || back != d {
			t.Errorf("%s: read back as %v, %v", text, back, err)
		}
		if d.Size() == 0 || d.Descr() == "" {
			t.Errorf("%v: size %d, descr %q", d, d.Size(), d.Descr())
		}
	}
	for _, name := range []string{"", "invalid", "float", "uint128"} {
		if d, err := ParseDType(name); err == nil {
			t.Errorf("%q: parsed as %v", name, d)
		}
	}
	if _, err := json.Marshal(Invalid); err == nil {
		t.Error("Invalid has a JSON form")
	}
	if DType(200).Size() != 0 {
		t.Error("an unknown dtype has a size")
	}
}

// Every half has an exact float32, which rounds back to it.
func TestHalfRoundTrip(t *testing.T) {
	for i := range 1 << 16 {
		h := Half(i)
		f := h.Float32()
		if f != f {
			if h&0x7c00 != 0x7c00 || h&0x3ff == 0 {
				t.Fatalf("%#04x became NaN", i)
			}
			if back := HalfOf(f); back.Float32() == back.Float32() {
				t.Fatalf("NaN %#04x became the number %#04x", i, back)
			}
			continue
		}
		if back := HalfOf(f); back != h {
			t.Fatalf("%#04x is %v, which became %#04x", i, f, back)
		}
	}
}

// Between two neighboring halves, the nearer one is chosen, and of two equally near ones
// the one with an even last bit.
func TestHalfRounding(t *testing.T) {
	for i := range 0x7bff {
		low, high := Half(i), Half(i+1)
		a, b := float64(low.Float32()), float64(high.Float32())
		middle := float32((a + b) / 2) // exact: halves have 11 bits, float32 has 24
		even := low
		if i&1 == 1 {
			even = high
		}
		below := math.Nextafter32(middle, float32(math.Inf(-1)))
		above := math.Nextafter32(middle, float32(math.Inf(1)))
		if HalfOf(middle) != even || HalfOf(below) != low || HalfOf(above) != high {
			t.Fatalf("around %v: %#04x %#04x %#04x, want %#04x %#04x %#04x", middle, HalfOf(below), HalfOf(middle), HalfOf(above), low, even, high)
		}
		if HalfOf(-middle) != even|0x8000 {
			t.Fatalf("-%v: %#04x", middle, HalfOf(-middle))
		}
	}
}

func TestHalfLimits(t *testing.T) {
	for _, c := range []struct {
		f    float32
		want Half
	}{
		{65504, 0x7bff}, {65519.99, 0x7bff}, {65520, 0x7c00}, {math.MaxFloat32, 0x7c00},
		{float32(math.Inf(1)), 0x7c00}, {float32(math.Inf(-1)), 0xfc00},
		{0, 0}, {float32(math.Copysign(0, -1)), 0x8000}, {math.SmallestNonzeroFloat32, 0}, {5.9604645e-08, 1},
	} {
		if got := HalfOf(c.f); got != c.want {
			t.Errorf("%v: %#04x, want %#04x", c.f, got, c.want)
		}
	}
}

func TestBrain(t *testing.T) {
	for i := range 1 << 16 {
		b := Brain(i)
		f := b.Float32()
		if f != f {
			if back := BrainOf(f); back.Float32() == back.Float32() {
				t.Fatalf("NaN %#04x became the number %#04x", i, back)
			}
			continue
		}
		if back := BrainOf(f); back != b {
			t.Fatalf("%#04x is %v, which became %#04x", i, f, back)
		}
	}
	for _, c := range []struct {
		bits uint32
		want Brain
	}{
		{0x3f800000, 0x3f80}, {0x3f807fff, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81},
		{0x3f818000, 0x3f82}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80},
	} {
		if got := BrainOf(math.Float32frombits(c.bits)); got != c.want {
			t.Errorf("%#08x: %#04x, want %#04x", c.bits, got, c.want)
		}
	}
}
