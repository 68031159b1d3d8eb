package layout

import (
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// TestCostOfWindows compares the average of all places of a window with the formula.
func TestCostOfWindows(t *testing.T) {
	for _, c := range []struct{ window, chunk []int }{{[]int{3, 5}, []int{4, 2}}, {[]int{1, 7}, []int{5, 3}}, {[]int{6, 4}, []int{2, 8}}, {[]int{2, 2}, []int{1, 1}}} {
		a := WindowedArray{Window: c.window, Chunk: c.chunk}
		touched, places := 0, 0
		for k, w := range c.window { // as many places as are at each distance from a border of chunks
			a.Shape = append(a.Shape, w-1+24*c.chunk[k])
		}
		for y := range a.Shape[0] - c.window[0] + 1 {
			for x := range a.Shape[1] - c.window[1] + 1 {
				rows := (y+c.window[0]-1)/c.chunk[0] - y/c.chunk[0] + 1
				columns := (x+c.window[1]-1)/c.chunk[1] - x/c.chunk[1] + 1
				touched, places = touched+rows*columns, places+1
			}
		}
		a.measure(4)
		want := float64(touched) / float64(places)
		if math.Abs(a.Chunks-want) > 1e-9 || math.Abs(a.Read-want*float64(4*tensor.Shape(c.chunk).Elems())) > 1e-6 {
			t.Errorf("windows %v of chunks %v: %v chunks and %v bytes, want %v", c.window, c.chunk, a.Chunks, a.Read, want)
		}
	}
}

// TestBestChunk finds no chunk that costs less, and is near the formula for windows of one size along two axes.
func TestBestChunk(t *testing.T) {
	a := WindowedArray{Shape: []int{4000, 4000}, Window: []int{128, 128}}
	best := a.best(20<<10, 4)
	cost := func(chunk []int) float64 {
		chunks, read := a.cost(chunk, 4)
		return read + chunks*(20<<10)
	}
	for y := 8; y < 400; y += 3 {
		for x := 8; x < 400; x += 3 {
			if cost([]int{y, x}) < 0.98*cost(best) {
				t.Fatalf("chunks of %d by %d cost %v, those of %v %v", y, x, cost([]int{y, x}), best, cost(best))
			}
		}
	}
	want := math.Cbrt(5120 * 127) // of 20 KiB of float32
	if side := math.Sqrt(float64(best[0] * best[1])); side < want*0.8 || side > want*1.25 {
		t.Errorf("chunks of %v, want %.0f by %.0f", best, want, want)
	}
}

// TestReadWindows reads a file of h5py: its chunks are (2, 3, 3).
func TestReadWindows(t *testing.T) {
	const path = "../../../../internal/hdf5/meta/testdata/scales-new.h5"
	w, err := ReadWindows(path, map[string]int{"time": 3, "lat": 2})
	require.NoError(t, err)
	for _, a := range w.Arrays {
		if a.Field == "t2m" && (a.Window[0] != 3 || a.Window[1] != 2 || a.Window[2] != 5 || a.Chunk == nil || a.Bytes != 120) {
			t.Errorf("%+v", a)
		}
	}
	var b strings.Builder
	if err := w.Render(&b); err != nil || !strings.Contains(b.String(), "bytes read per byte used") {
		t.Errorf("%s, %v", &b, err)
	}
	for axis, want := range map[string]string{"depth": `there is no axis "depth"; there are: `, "lat": "a window of 9 of axis lat, which has 4 elements"} {
		if _, err := ReadWindows(path, map[string]int{axis: 9}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
