package labels

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Values of pycocotools.
func TestPolygonsOfCOCO(t *testing.T) {
	for _, c := range []struct {
		xy     []float64
		counts []uint32
	}{
		{[]float64{1, 1, 4, 1, 4, 3, 1, 3}, []uint32{6, 2, 3, 2, 3, 2, 12}},
		{[]float64{1.5, 1.5, 4.5, 1.5, 4.5, 3.5, 1.5, 3.5}, []uint32{12, 2, 3, 2, 3, 2, 6}},
		{[]float64{1.4, 1.4, 4.4, 1.4, 4.4, 3.4, 1.4, 3.4}, []uint32{6, 2, 3, 2, 3, 2, 12}},
		{[]float64{1.2, 1.2, 4.6, 1.2, 2.9, 3.9}, []uint32{6, 1, 4, 2, 3, 2, 12}},
		{[]float64{-2, -2, 10, -2, 10, 10, -2, 10}, []uint32{0, 30}},
	} {
		m, err := polygonMask(c.xy, 5, 6)
		require.NoError(t, err)
		if !slices.Equal(m.Counts, c.counts) {
			t.Errorf("%v: %v, want %v", c.xy, m.Counts, c.counts)
		}
	}
	square, err := polygonMask([]float64{0, 0, 9, 0, 9, 9, 0, 9}, 20, 20)
	pixels := make([]byte, 20*20)
	fill(square, pixels)
	if n := bytes.Count(pixels, []byte{1}); err != nil || n != 81 {
		t.Errorf("a square from 0 to 9 has %d pixels, %v", n, err)
	}
}

func TestText(t *testing.T) {
	for text, counts := range map[string][]uint32{
		"61X13mN000`0": {6, 1, 40, 4, 5, 4, 5, 4, 21}, "0Xo05kPOkdQ3": {0, 1000, 5, 3, 100000}, "021": {0, 2, 1},
	} {
		total := 0
		for _, n := range counts {
			total += int(n)
		}
		m, err := parseRuns(text, total, 1)
		if err != nil || !slices.Equal(m.Counts, counts) {
			t.Errorf("%q is %v, %v", text, m.Counts, err)
		}
	}
	for _, text := range []string{"`", "6", "61X13mN000`", "\x7f", strings.Repeat("o", 40), "0O"} {
		if m, err := parseRuns(text, 9, 10); err == nil {
			t.Errorf("%q is %v", text, m.Counts)
		}
	}
}

func TestPolygonsThatAreNone(t *testing.T) {
	for _, xy := range [][]float64{nil, {1, 2, 3, 4}, {1, 2, 3, 4, 5, 6, 7}, {0, 0, 1e300, 0, 5, 5}, {0, 0, 1e7, 0, 0, 1e7, 1e7, 1e7, 0, 0, 1e7, 1e7}} {
		if m, err := polygonMask(xy, 10, 10); err == nil {
			t.Errorf("%v is %v", xy, m.Counts)
		}
	}
}

// fill writes 1 to the pixels of dst that are 1 in the mask.
func fill(m runMask, dst []byte) {
	m.Paint(func(x, y0, y1 int) {
		for y := y0; y < y1; y++ {
			dst[y*m.W+x] = 1
		}
	})
}

// A union has the pixels that one of its masks has.
func TestUnion(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 500 {
		h, w := 1+r.IntN(20), 1+r.IntN(20)
		want, masks := make([]byte, h*w), []runMask(nil)
		for range 1 + r.IntN(4) {
			var xy []float64
			for range 3 + r.IntN(5) {
				xy = append(xy, r.Float64()*30-5, r.Float64()*30-5)
			}
			m, err := polygonMask(xy, h, w)
			require.NoError(t, err)
			if _, err := newMask(m.Counts, h, w); err != nil {
				t.Fatal(err)
			}
			fill(m, want)
			masks = append(masks, m)
		}
		u, got := unionOfMasks(masks...), make([]byte, h*w)
		if fill(u, got); !slices.Equal(got, want) {
			t.Fatalf("trial %d: %v of %v", n, u.Counts, masks)
		}
	}
}
