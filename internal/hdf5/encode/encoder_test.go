package encode

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

func TestChunkRecords(t *testing.T) {
	for _, tt := range []struct {
		records int64
		record  int
		want    int
	}{
		{1000, 150528, 1},
		{1000, 65536, 1},
		{1000, 784, 83},
		{10, 784, 10},
		{0, 784, 1},
		{1 << 30, 784, 1337},   // never more than 1 MiB
		{1 << 20, 100_000, 10}, // not enough even so
		{200_000, 65536, 4},    // fewer than 65,536
		{5, 3 << 20, 1},        // larger than 1 MiB
		{math.MaxInt64, 1, 1 << 20},
	} {
		if got := ChunkRecords(tt.records, tt.record); got != tt.want {
			t.Errorf("%d records of %d bytes: %d a chunk, want %d", tt.records, tt.record, got, tt.want)
		}
	}
}

// smooth gives float32 measurements, whose high bytes shuffle brings together.
func smooth(n int) []byte {
	var b []byte
	x := uint32(1)
	for i := range n {
		x = x*1664525 + 1013904223
		v := 100 + float32(math.Sin(float64(i)/300)) + float32(x>>8)/(1<<28)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// pixels gives float32 values that were bytes.
func pixels(n int) []byte {
	var b []byte
	for _, v := range h5test.Values(9, n) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)/255))
	}
	return b
}

func TestChoose(t *testing.T) {
	r := Recipe{Record: 4000, Elem: 4, Records: 16, Level: 6}
	for name, tt := range map[string]struct {
		ask     Shuffle
		sample  []byte
		shuffle bool
	}{
		"measured": {Auto, smooth(16000), true},
		"pixels":   {Auto, pixels(16000), false},
		"short":    {Auto, smooth(1000), true},
		"on":       {On, pixels(16000), true},
		"off":      {Off, smooth(16000), false},
	} {
		c, err := Choose(r, tt.ask, tt.sample)
		if err != nil || c.Shuffle != tt.shuffle || c.Level != 6 || c.Ratio <= 0 || c.Ratio > 1 {
			t.Errorf("%s: %+v, error %v", name, c, err)
		}
		if strings.Contains(c.Reason, "asked for") != (tt.ask != Auto) || strings.HasPrefix(c.Reason, "no ") == c.Shuffle {
			t.Errorf("%s: %+v", name, c)
		}
		again, err := Choose(r, tt.ask, tt.sample)
		if err != nil || again != c {
			t.Errorf("%s: %+v, then %+v, error %v", name, c, again, err)
		}
	}
	r.Elem = 1
	if c, err := Choose(r, On, h5test.Values(1, 8000)); err != nil || c.Shuffle || c.Ratio <= 0 || c.Ratio > 1 {
		t.Errorf("bytes: %+v, error %v", c, err)
	}
}

// The level is the lowest that comes close to the best.
func TestChooseLevel(t *testing.T) {
	r := Recipe{Record: 4000, Elem: 4, Records: 16}
	for name, sample := range map[string][]byte{"measured": smooth(16000), "pixels": pixels(16000),
		"zeros": make([]byte, 64000)} {
		c, err := Choose(r, Auto, sample)
		if err != nil || c.Level < 1 || c.Level > 9 || !strings.Contains(c.Reason, "; level ") {
			t.Fatalf("%s: %+v, error %v", name, c, err)
		}
		least := c.Recipe
		for least.Level = 9; least.Level > 0; least.Level-- {
			ratio, err := tryOut(least, sample)
			require.NoError(t, err)
			if least.Level == 9 && c.Ratio > ratio*worthLevel {
				t.Errorf("%s: %+v, but level 9 makes %v", name, c, ratio)
			}
			if least.Level == c.Level && ratio != c.Ratio {
				t.Errorf("%s: %+v, but its level makes %v", name, c, ratio)
			}
		}
	}
}

func TestChooseErrors(t *testing.T) {
	for _, bad := range []Recipe{{}, {Record: 10, Elem: 4, Records: 1, Level: 6}, {Record: 8, Elem: 4, Level: 6},
		{Record: 8, Elem: 4, Records: 1, Level: 10}} {
		if _, err := Choose(bad, Auto, make([]byte, 8)); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
	for _, n := range []int{0, 9} {
		if _, err := Choose(Recipe{Record: 8, Elem: 4, Records: 1, Level: 6}, Auto, make([]byte, n)); err == nil {
			t.Errorf("sample of %d bytes: no error", n)
		}
	}
}

// The same records give the same chunk, whatever was made before.
func TestEncodeIsDeterministic(t *testing.T) {
	for level := 1; level <= 9; level++ {
		r := Recipe{Record: 1 << 12, Elem: 4, Records: 4, Level: level, Shuffle: level%2 == 0}
		used, err := NewEncoder(r)
		require.NoError(t, err)
		for seed := range 8 {
			records := h5test.Values(seed, (1+seed%4)<<12)
			fresh, err := NewEncoder(r)
			require.NoError(t, err)
			want, mask, err := fresh.Encode(records)
			require.NoError(t, err)
			got, again, err := used.Encode(records)
			if err != nil || !bytes.Equal(got, want) || mask != again {
				t.Fatalf("level %d, chunk %d: other bytes, error %v", level, seed, err)
			}
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	e, err := NewEncoder(Recipe{Record: 8, Elem: 4, Records: 2, Level: 6})
	require.NoError(t, err)
	for _, n := range []int{0, 7, 9, 24} {
		if _, _, err := e.Encode(make([]byte, n)); err == nil {
			t.Errorf("%d bytes: no error", n)
		}
	}
}
