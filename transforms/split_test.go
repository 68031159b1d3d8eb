package transforms

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// anyPipeline returns transforms of which some make one size before the first that is random.
func anyPipeline(rng *rand.Rand) []Transform {
	size := func() []int { return []int{30 + rng.IntN(20), 30 + rng.IntN(20)} }
	fixed := []func() Transform{
		func() Transform { return Resize{Size: []int{40}} }, func() Transform { return Grayscale{Channels: new(3)} },
		func() Transform { return Blur{Sigma: 1} }, func() Transform { return HorizontalFlip{} },
		func() Transform { return Pad{Padding: []int{2, 1}, Mode: PadReflect} }, func() Transform { return ToImage{} },
		func() Transform { return Rotate{Angle: 10} }, func() Transform { return Resize{Size: []int{50}, Fit: "longer"} },
	}
	sized := []func() Transform{
		func() Transform { return Resize{Size: size()} }, func() Transform { return CenterCrop{Size: size()} },
		func() Transform { return Resize{Size: []int{44}, Fit: "pad"} }, func() Transform { return Resize{Size: []int{44}, Fit: "cover"} },
		func() Transform { return Fill{Size: size()} }, func() Transform { return Resize{Size: size(), Interpolation: "lanczos"} },
	}
	random := []func() Transform{
		func() Transform { return RandomCrop{Size: []int{24}, Padding: []int{4}} }, func() Transform { return RandomHorizontalFlip{} },
		func() Transform { return RandomResizedCrop{Size: []int{32, 24}} }, func() Transform { return RandomVerticalFlip{} },
		func() Transform { return ColorJitter{Brightness: []float64{.4}} }, func() Transform { return RandomRotation{Degrees: []float64{30}} },
		func() Transform { return RandAugment{} },
	}
	floats := []func() []Transform{
		func() []Transform { return nil }, func() []Transform { return []Transform{ToTensor{}} },
		func() []Transform { return []Transform{ToImage{}} }, func() []Transform { return []Transform{ToLayout{HWC}} },
		func() []Transform { return []Transform{ToTensor{}, RandomErasing{}} },
		func() []Transform { return []Transform{ConvertDType{DType: tensor.Float16}} },
	}
	pick := func(from []func() Transform) Transform { return from[rng.IntN(len(from))]() }
	var ts []Transform
	for range rng.IntN(3) {
		ts = append(ts, pick(fixed))
	}
	ts = append(ts, pick(sized))
	for range rng.IntN(3) {
		ts = append(ts, pick(fixed))
	}
	for range rng.IntN(4) {
		ts = append(ts, pick(random))
	}
	return append(ts, floats[rng.IntN(len(floats))]()...)
}

// The head and then the tail have the result of the whole. PENSTOCK_SPLITS is the number of pipelines.
func TestSplit(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("PENSTOCK_SPLITS"))
	if err != nil {
		n = 60
	}
	for i := range n {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		p := mustCompose(t, anyPipeline(rng)...)
		recipe, err := p.MarshalJSON()
		require.NoError(t, err)
		head, tail, err := p.Split()
		if err != nil {
			t.Fatalf("%d: %s: %v", i, recipe, err)
		}
		src := testImage(60+rng.IntN(20), 50+rng.IntN(20), 3)
		between, err := head.Output(InfoOf(src))
		if err != nil || between.DType != tensor.Uint8 || between.Layout != HWC || head.Random() {
			t.Fatalf("%d: %s: the head makes %v, %v", i, recipe, between, err)
		}
		out, err := p.Output(InfoOf(src))
		require.NoError(t, err)
		stored := NewImage(between.W, between.H, between.C)
		want, got, planar := make([]byte, out.Bytes()), make([]byte, out.Bytes()), make([]byte, out.Bytes())
		whole, first, second := p.Runner(), head.Runner(), tail.Runner()
		for record := range uint64(4) {
			rnd := NewRand(3, 1, record)
			require.NoError(t, whole.DoRand(want, src, rnd))
			require.NoError(t, first.Do(stored.Pix, src))
			require.NoError(t, second.DoRand(got, stored, rnd))
			require.NoError(t, second.DoRand(planar, planarOf(stored), rnd))
			if !bytes.Equal(got, want) || !bytes.Equal(planar, want) {
				t.Errorf("%d: %s: record %d differs", i, recipe, record)
			}
		}
	}
}

// The head is the longest that makes bytes of one size, and layouts stay with the tail.
func TestSplitsWhere(t *testing.T) {
	for _, c := range []struct {
		ts         []Transform
		head, tail string // names; "" as head: there is none, and the tail is in the error
	}{
		{[]Transform{Resize{Size: []int{256}}, CenterCrop{Size: []int{224}}, ToTensor{}}, "Resize CenterCrop", "ToLayout ToTensor"},
		{[]Transform{ToImage{}, Resize{Size: []int{256, 256}}, RandomCrop{Size: []int{224}}}, "Resize", "ToLayout ToLayout RandomCrop"},
		{[]Transform{Resize{Size: []int{9, 9}}, Resize{Size: []int{5}}, RandomHorizontalFlip{}, Blur{Sigma: 1}},
			"Resize Resize", "ToLayout RandomHorizontalFlip Blur"},
		{[]Transform{CenterCrop{Size: []int{9}}, ToTensor{}, Normalize{Mean: []float64{0}, Std: []float64{1}}}, "CenterCrop", "ToLayout ToTensor Normalize"},
		{[]Transform{RandomResizedCrop{Size: []int{224}}, ToTensor{}}, "", "begins with RandomResizedCrop, which draws at random; put a Resize"},
		{[]Transform{Resize{Size: []int{256}}, RandomCrop{Size: []int{224}}}, "", "several sizes before RandomCrop"},
		{[]Transform{ToTensor{}}, "", "several sizes; add a Resize"},
		{nil, "", "several sizes; add a Resize"},
	} {
		head, tail, err := mustCompose(t, c.ts...).Split()
		if err != nil {
			if c.head != "" || !strings.Contains(err.Error(), c.tail) {
				t.Errorf("%v: %v", c.ts, err)
			}
			continue
		}
		names := func(p *Pipeline) string {
			var list []string
			for _, op := range p.Transforms() {
				list = append(list, opName(op))
			}
			return strings.Join(list, " ")
		}
		if got := fmt.Sprintf("%s, %s", names(head), names(tail)); got != c.head+", "+c.tail {
			t.Errorf("%v: %s", c.ts, got)
		}
	}
}
