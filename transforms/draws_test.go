package transforms

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
)

var draws = flag.Int("draws", 3000, "random values of each kind that TestDrawsAgainstTorchvision compares")

// drawsScript prints, as float64, what torchvision draws for an image of 500 x 375.
const drawsScript = `
import sys, torch
from torchvision import transforms as T
torch.manual_seed(7)
n, out = int(sys.argv[1]), []
image = torch.zeros(3, 375, 500)
for _ in range(n):
    y, x, h, w = T.RandomResizedCrop.get_params(image, (0.08, 1.0), (3 / 4, 4 / 3))
    out.append((w * h, w / h, x, y, w, h))
crops = torch.tensor(out, dtype=torch.float64)
jitter = [T.ColorJitter.get_params((0.6, 1.4), (0.5, 1.5), (0.2, 1.8), (-0.1, 0.1))[1:] for _ in range(n)]
flip, mark = T.RandomHorizontalFlip(), torch.tensor([[[0.0, 1.0]]])
flips = torch.tensor([[float(flip(mark)[0, 0, 0])] for _ in range(n)], dtype=torch.float64)
table = torch.cat((crops, torch.tensor(jitter, dtype=torch.float64), flips), 1)
sys.stdout.buffer.write(table.T.contiguous().numpy().tobytes())
`

// TestDrawsAgainstTorchvision compares the distributions of what is drawn with torchvision's, by
// the test of Kolmogorov and Smirnov for two samples, at 0.01 for all kinds together.
func TestDrawsAgainstTorchvision(t *testing.T) {
	n := *draws
	out := pythontest.Run(t, "import torchvision", "-c", drawsScript, strconv.Itoa(n))
	names := []string{"area", "ratio", "left", "top", "width", "height", "brightness", "contrast", "saturation", "hue",
		"flip"}
	if len(out) != 8*n*len(names) {
		t.Fatalf("%d bytes of %d draws", len(out), n)
	}
	theirs := make([]float64, n*len(names))
	require.NoError(t, binary.Read(bytes.NewReader(out), binary.LittleEndian, theirs))
	ours := ownDraws(t, n, len(names))
	for i, name := range names {
		d, p := kolmogorovSmirnov(ours[i], theirs[i*n:(i+1)*n])
		t.Logf("%-10s D = %.5f, p = %.3f", name, d, p)
		if p < 0.01/float64(len(names)) { // of Bonferroni: all names are tests of their own
			t.Errorf("%s is not drawn as in torchvision: D = %v, p = %v", name, d, p)
		}
	}
}

// ownDraws returns n values of each kind, each of another record.
func ownDraws(t *testing.T, n, kinds int) [][]float64 {
	var jitters []Transform
	for _, one := range []ColorJitter{{Brightness: []float64{0.6, 1.4}}, {Contrast: []float64{0.5, 1.5}},
		{Saturation: []float64{0.2, 1.8}}, {Hue: []float64{-0.1, 0.1}}} {
		jitter, err := resolve[Transform](one)
		require.NoError(t, err)
		jitters = append(jitters, jitter)
	}
	flip, err := resolve[Transform](RandomHorizontalFlip{})
	require.NoError(t, err)
	out := make([][]float64, kinds)
	var p Plan
	for record := range uint64(n) {
		r := NewRand(3, 1, record)
		c := drawPart(&r, 500, 375, []float64{0.08, 1}, []float64{3.0 / 4, 4.0 / 3}, anyPart)
		w, h := float64(c.Dx()), float64(c.Dy())
		values := []float64{w * h, w / h, float64(c.Min.X), float64(c.Min.Y), w, h}
		require.NoError(t, p.reset(Info{W: 500, H: 375, C: 3}, r))
		for i, jitter := range jitters {
			require.NoError(t, jitter.Build(&p))
			values = append(values, p.ops[i].args[0])
		}
		require.NoError(t, flip.Build(&p))
		flipped := 0.0
		if p.open().flipH {
			flipped = 1
		}
		for i, v := range append(values, flipped) {
			out[i] = append(out[i], v)
		}
	}
	return out
}

// kolmogorovSmirnov returns the largest distance of two samples' distributions, and how probable
// one as large is where they are of one distribution, by the series that it tends to (Press et
// al., Numerical Recipes, 14.3.3).
func kolmogorovSmirnov(a, b []float64) (d, p float64) {
	slices.Sort(a)
	slices.Sort(b)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		v := min(a[i], b[j])
		for i < len(a) && a[i] == v {
			i++
		}
		for j < len(b) && b[j] == v {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	n := math.Sqrt(float64(len(a)) * float64(len(b)) / float64(len(a)+len(b)))
	lambda := (n + 0.12 + 0.11/n) * d
	if lambda < 0.2 { // where the series converges slowly, to 1
		return d, 1
	}
	for k := 1.0; k <= 100; k++ {
		p += 2 * math.Pow(-1, k-1) * math.Exp(-2*k*k*lambda*lambda)
	}
	return d, p
}

// The test distinguishes distributions that differ by little, and takes equal ones for equal.
func TestKolmogorovSmirnov(t *testing.T) {
	sample := func(seed uint64, shift float64) (out []float64) {
		r := NewRand(seed, 0, 0)
		for range 5000 {
			out = append(out, r.Float64()+shift)
		}
		return out
	}
	if d, p := kolmogorovSmirnov(sample(1, 0), sample(2, 0)); p < 0.01 {
		t.Errorf("equal ones: D = %v, p = %v", d, p)
	}
	if d, p := kolmogorovSmirnov(sample(1, 0), sample(2, 0.05)); p > 0.001 {
		t.Errorf("shifted by 0.05: D = %v, p = %v", d, p)
	}
}
