package feed

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/mmapds"
)

// A record that only fills up the last batch of an epoch does not count, whether batches are made in shared memory or
// copied there.
func TestMask(t *testing.T) {
	for _, ragged := range []bool{false, true} {
		c := dial(t.Context(), t, makeDataset(t, ragged))
		c.greet(`{"batch_size":16,"world_size":3,"rank":2}`) // the second batch has 2 records for three ranks
		c.start()
		for _, want := range [][]byte{slices.Repeat([]byte{1}, 16), {0}} {
			b := c.receive().Batch
			if b == nil {
				t.Fatal("no batch")
			}
			if got := c.read(b.Mask, b.Count); !slices.Equal(got, want) {
				t.Errorf("ragged %v: mask %v, want %v", ragged, got, want)
			}
		}
	}
}

// Mix draws as many records as it is asked for, rounded up to whole batches.
func TestMixSamples(t *testing.T) {
	var both [2]*mmapds.Dataset
	for i := range both {
		ds, err := mmapds.Open(makeDataset(t, false))
		require.NoError(t, err)
		defer ds.Close()
		both[i] = ds
	}
	joined, err := combine.NewConcat(both[0], both[1])
	require.NoError(t, err)
	for _, want := range []int{2 * records, 7, 1000} {
		asked := want
		n := &asked
		if want == 2*records { // that of all
			n = nil
		}
		want = (want + 3) / 4 * 4
		order, err := sampled{src: joined, global: 4}.order(t.Context(), &samplerOption{Kind: "mix", Schedule: []mixWeights{{Weights: []float64{3, 1}}}, NumSamples: n})
		require.NoError(t, err)
		s := order.Epoch(joined.Len(), 1, 0)
		if s.Len() != want {
			t.Errorf("%d samples, want %d", s.Len(), want)
		}
		all, first := make([]int, want), 0
		s.Fill(0, all)
		for _, r := range all {
			if r < records {
				first++
			}
		}
		if share := float64(first) / float64(want); want == 1000 && math.Abs(share-0.75) > 0.05 {
			t.Errorf("%v of the records are of the first dataset, want 0.75", share)
		}
	}
}

// LabelSmoothing gives each class smoothing/classes, and the label's the rest; a second one smooths that: 0.4 and 0.5 keep 0.3.
func TestLabelSmoothing(t *testing.T) {
	const classes = 60
	c := dial(t.Context(), t, makeDataset(t, false))
	w := c.greet(`{"batch_size":8,"batch_transforms":[{"op":"LabelSmoothing","smoothing":0.4,"num_classes":60},{"op":"LabelSmoothing","smoothing":0.5}]}`)
	c.start()
	b := c.receive().Batch
	y := c.read(b.Fields[1].At, 8*classes*4)
	if w.Fields[1].Name != "labels" || b.Count != 8 {
		t.Fatalf("%+v", w.Fields)
	}
	for i := range 8 {
		for k := range classes {
			want := 0.7 / classes
			if k == i {
				want += 0.3
			}
			if got := math.Float32frombits(binary.NativeEndian.Uint32(y[4*(i*classes+k):])); math.Abs(float64(got)-want) > 1e-6 {
				t.Fatalf("record %d, class %d: %v, want %v", i, k, got, want)
			}
		}
	}
}

// The number of verify is the part of the blocks that are compared with their checksums, or a mode.
func TestVerify(t *testing.T) {
	path := makeDataset(t, false)
	for verify, want := range map[float64]string{0: "", 0.5: "50 % checked", 0.01: "1 % checked", 1: "checked each time", -1: "checked at first touch"} {
		o := Options{BatchSize: 1, Verify: verify}
		ds, err := mmapds.Open(path, o.verify())
		require.NoError(t, err)
		if _, why, _ := ds.DescribeReads("images"); !strings.Contains(why, want) || strings.Contains(why, "checked") != (want != "") {
			t.Errorf("verify %v: %q; want %q", verify, why, want)
		}
		ds.Close()
	}
}
