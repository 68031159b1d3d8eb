package transforms

import (
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func testBatch(n int, info Info, classes int) *Batch {
	size := info.W * info.H * info.C
	b := &Batch{X: make([]float32, n*size), Info: info, Labels: make([]int64, n), Y: make([]float32, n*classes)}
	for i := range b.X {
		b.X[i] = float32(i%size) + 1000*float32(i/size)
	}
	for i := range b.Labels {
		b.Labels[i] = int64(i % classes)
	}
	return b
}

// checkShares checks that labels have the share keep, and the neighbor's the rest.
func checkShares(t *testing.T, b *Batch, classes int, keep float64) {
	t.Helper()
	n := len(b.Labels)
	for i := range n {
		var want [9]float64
		want[b.Labels[i]] += keep
		want[b.Labels[(i+n-1)%n]] += 1 - keep
		for c := range classes {
			if math.Abs(float64(b.Y[i*classes+c])-want[c]) > 1e-6 {
				t.Fatalf("record %d class %d: %v, want %v", i, c, b.Y[i*classes+c], want[c])
			}
		}
	}
}

func TestMixUp(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		b, was := testBatch(n, Info{W: 4, H: 3, C: 3}, 3), testBatch(n, Info{W: 4, H: 3, C: 3}, 3)
		rnd, again := NewRand(1, 1, uint64(n)), NewRand(1, 1, uint64(n))
		require.NoError(t, (&MixUp{Classes: 3, Alpha: 1}).Apply(b, &rnd))
		keep := again.Beta(1)
		for i, v := range b.X {
			rec, at := i/36, i%36
			other := was.X[(rec+n-1)%n*36+at]
			if want := float64(was.X[i])*keep + float64(other)*(1-keep); math.Abs(float64(v)-want) > 1e-2 {
				t.Fatalf("%d records: element %d is %v, want %v", n, i, v, want)
			}
		}
		checkShares(t, b, 3, keep)
	}
}

func TestCutMix(t *testing.T) {
	for _, layout := range []Layout{HWC, CHW} {
		for seed := range uint64(30) {
			info := Info{W: 9, H: 7, C: 3, Layout: layout}
			const n, size = 4, 9 * 7 * 3
			b, was := testBatch(n, info, 4), testBatch(n, info, 4)
			rnd := NewRand(seed, 0, 0)
			require.NoError(t, (&CutMix{Classes: 4, Alpha: 0.5}).Apply(b, &rnd))
			changed := [n]int{}
			for i, v := range b.X {
				rec, at := i/size, i%size
				switch v {
				case was.X[i]:
				case was.X[(rec+n-1)%n*size+at]:
					changed[rec]++
				default:
					t.Fatalf("element %d is from nowhere: %v", i, v)
				}
			}
			if changed != [n]int{changed[0], changed[0], changed[0], changed[0]} || changed[0]%3 != 0 {
				t.Fatalf("changed %v elements", changed)
			}
			checkShares(t, b, 4, 1-float64(changed[0])/size)
		}
	}
}

func TestMixErrors(t *testing.T) {
	info := Info{W: 2, H: 2, C: 1}
	rnd := NewRand(0, 0, 0)
	for want, change := range map[string]func(*Batch){
		"15 elements are not 4 records": func(b *Batch) { b.X = b.X[:15] },
		"11 shares":                     func(b *Batch) { b.Y = b.Y[:11] },
		"label 3 of record 1":           func(b *Batch) { b.Labels[1] = 3 },
	} {
		b := testBatch(4, info, 3)
		change(b)
		if err := (&MixUp{Classes: 3, Alpha: 1}).Apply(b, &rnd); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("MixUp: %v, want %q", err, want)
		}
		if err := (&CutMix{Classes: 3}).Apply(b, &rnd); err == nil ||
			!strings.Contains(err.Error(), "transform CutMix: "+want) {
			t.Errorf("CutMix: %v, want %q", err, want)
		}
	}
	for _, alpha := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if err := (&MixUp{Classes: 3, Alpha: alpha}).Apply(testBatch(4, info, 3), &rnd); err == nil {
			t.Errorf("MixUp: alpha %v passes", alpha)
		}
		if err := (&CutMix{Classes: 3, Alpha: alpha}).Apply(testBatch(4, info, 3), &rnd); err == nil {
			t.Errorf("CutMix: alpha %v passes", alpha)
		}
	}
	require.NoError(t, (&MixUp{Classes: 3, Alpha: 1}).Apply(testBatch(0, info, 3), &rnd))
}

func TestMixAllocatesNothing(t *testing.T) {
	b, rnd := testBatch(4, Info{W: 9, H: 7, C: 3}, 4), NewRand(0, 0, 0)
	m, c := &MixUp{Classes: 4, Alpha: 1}, &CutMix{Classes: 4, Alpha: 1}
	do := func() {
		if m.Apply(b, &rnd) != nil || c.Apply(b, &rnd) != nil {
			t.Error("failed")
		}
	}
	do()
	if n := testing.AllocsPerRun(50, do); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
