package transforms

import (
	"errors"
	"fmt"
	"math"
)

func init() { Register[GaussianBlur]() }

// GaussianBlur blurs an image by a square Gaussian of random width; beyond the edge the image is
// reflected. Columns are summed before rows. torchvision sums in another order, so that about one
// byte in 50,000 differs from torchvision's by one level.
type GaussianBlur struct {
	KernelSize int `json:"kernel_size"` // pixels, odd, at most 63
	// range of the deviation in pixels; one number is always that; nil means 0.1 to 2
	Sigma []float64 `json:"sigma" default:"[0.1,2]"`
}

const maxKernel = 63

// Resolve expands one Sigma to a range, and checks both parameters.
func (t GaussianBlur) Resolve() (Transform, error) {
	if len(t.Sigma) == 1 {
		t.Sigma = []float64{t.Sigma[0], t.Sigma[0]}
	}
	err := checkRange("sigma", t.Sigma, math.MaxFloat32)
	if t.KernelSize%2 != 1 || t.KernelSize < 1 || t.KernelSize > maxKernel {
		err = errors.Join(err, fmt.Errorf("kernel_size %d must be odd, 1 to %d", t.KernelSize, maxKernel))
	}
	return t, err
}

// Build draws the width.
func (t GaussianBlur) Build(p *Plan) error {
	in := p.Info()
	if half := t.KernelSize / 2; half >= in.W || half >= in.H {
		return fmt.Errorf("input of %dx%d pixels is too small to be reflected by half of a kernel of %d", in.W, in.H,
			t.KernelSize)
	}
	return addChange(p, gaussianBlur, float64(t.KernelSize), p.Rand().Between(t.Sigma[0], t.Sigma[1]))
}

func (GaussianBlur) Randomized() {}

// gaussianBlur sums columns, then rows, in float32: args are the kernel size and sigma.
func gaussianBlur(m, other *Image, args OpArgs) {
	var kernel [maxKernel]float32
	k := kernel[:int(args[0])]
	gaussian(k, args[1])
	other.Reshape(m.W, m.H, m.C)
	for y := range m.H {
		for x := 0; x < m.W; x += blurTile {
			blurRow(other.Row(y), m, k, x, min(x+blurTile, m.W), y)
		}
	}
	*m, *other = *other, *m
}

// blurTile is how many pixels of a row are summed at a time. The sums of a tile fit into an array
// on the stack, and stay in the nearest cache.
const blurTile = 64

// blurRow computes pixels [x0, x1) of row y: first the sums of columns, then of these sums along
// the row.
func blurRow(dst []byte, m *Image, k []float32, x0, x1, y int) {
	var sums [(blurTile + maxKernel - 1) * 3]float32 // of columns x0-half to x1+half
	half, c := len(k)/2, m.C
	for j, w := range k {
		row := m.Row(reflected(y+j-half, m.H))
		for x := x0 - half; x < x1+half; x++ {
			s, p := sums[(x-x0+half)*c:][:c], row[reflected(x, m.W)*c:][:c]
			for i := range s {
				s[i] += float32(w * float32(p[i]))
			}
		}
	}
	for i := range (x1 - x0) * c {
		sum := float32(0)
		for j, w := range k {
			sum += float32(w * sums[i+j*c])
		}
		dst[x0*c+i] = byte(math.RoundToEven(float64(min(max(sum, 0), 255))))
	}
}

// reflected returns which of n positions stands at place i beyond an edge.
func reflected(i, n int) int { return PadReflect.from(i, n) }

// gaussian fills k with the weights of a Gaussian, which add up to 1.
func gaussian(k []float32, sigma float64) {
	sum, half := 0.0, len(k)/2
	at := func(i int) float64 {
		d := float64(i-half) / sigma
		return math.Exp(-0.5 * d * d)
	}
	for i := range k {
		sum += at(i)
	}
	for i := range k {
		k[i] = float32(at(i) / sum)
	}
}
