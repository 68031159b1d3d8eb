package transforms

import (
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

func init() { Register[ElasticTransform]() }

// ElasticTransform moves each pixel by a random distance that resembles its neighbors' distances,
// as if the image was seen through moving water (Simard et al. 2003, as in torchvision).
type ElasticTransform struct {
	// strength: one number for both directions, or one across and one down
	Alpha []float64 `json:"alpha" default:"[50]" is:"pair 3e38"`
	// smoothness in pixels: one number for both directions, or one across and one down; 0 means
	// none; nil means 5
	Sigma         []float64 `json:"sigma" default:"[5]" is:"pair 100"`
	Interpolation string    `json:"interpolation" default:"bilinear" choices:"nearest bilinear"`
	// as in Pad
	Fill []int `json:"fill" default:"[0]" is:"fill"`
}

// Resolve refuses a Sigma that smooths in one direction only, which torchvision does not have.
func (t ElasticTransform) Resolve() (Transform, error) {
	if (t.Sigma[0] == 0) != (t.Sigma[1] == 0) {
		return nil, fmt.Errorf("sigma %v must be 0 in both directions, or in none", t.Sigma)
	}
	return t, nil
}

// resolvePair expands one number to a pair, and checks that both are 0 to most.
func resolvePair(name string, v *[]float64, most string) error {
	pair := *v
	if len(pair) == 1 {
		pair = []float64{pair[0], pair[0]}
	}
	if len(pair) != 2 || !(slices.Min(pair) >= 0 && slices.Max(pair) <= limit(most)) {
		return fmt.Errorf("%s %v must be one or two numbers, 0 to %s", name, pair, most)
	}
	*v = pair
	return nil
}

// Build draws a seed for the field of distances. The operation's arguments are float64, which hold
// 53 bits, so that the 64-bit seed is passed as two halves. Masks and keypoints recompute the same
// field from the seed.
func (t ElasticTransform) Build(p *Plan) error {
	in := p.Info()
	if half := elasticKernel(max(t.Sigma[0], t.Sigma[1])) / 2; half >= min(in.W, in.H) {
		return fmt.Errorf("input of %dx%d pixels is too small to be reflected by %d pixels, four times sigma", in.W, in.H,
			half)
	}
	f, err := parseWarpFilter(t.Interpolation)
	if err != nil {
		return err
	}
	seed := p.Rand().Uint64()
	high, low := float64(seed>>32), float64(seed&math.MaxUint32)
	err = p.apply(elastic, in.W, in.H, t.Alpha[0], t.Alpha[1], t.Sigma[0], t.Sigma[1], float64(f),
		packFill(fillBytes(t.Fill)), high, low)
	if err == nil {
		p.moved(moveElastic, [4]int{}, t.Alpha[0], t.Alpha[1], t.Sigma[0], t.Sigma[1], high, low)
	}
	return err
}

func (ElasticTransform) Randomized() {}

// elasticKernel returns the number of weights in a Gaussian of deviation sigma: odd, and four
// deviations to each side.
func elasticKernel(sigma float64) int { return int(8*sigma+1) | 1 }

// elastic moves pixels: args are the strengths, the deviations, the filter, the color of
// pixels from outside of the image, and two halves of a seed.
func elastic(m, other *Image, args OpArgs) {
	dx, dy := elasticField(m.W, m.H, args, room(m, other, elasticRoom(m.W, m.H, args)))
	displace(other, m, dx, dy, kernel.Filter(args[4]), unpackFill(args[5]))
	*m, *other = *other, *m
}

// elasticRoom returns how many numbers elasticField needs memory for.
func elasticRoom(w, h int, args OpArgs) int {
	return 3*w*h + max(w, h) + 3*elasticKernel(max(args[2], args[3]))
}

// elasticField returns how far each of w x h pixels moves, in halves of width and height: the units
// of torch's grid_sample. args are the arguments of elastic. The result lies in memory, which has
// elasticRoom numbers.
func elasticField(w, h int, args OpArgs, memory []float32) (dx, dy []float32) {
	n := w * h
	b := elasticBlur{w: w, h: h, between: memory[2*n : 3*n], memory: memory[3*n:]}
	r := NewRand(uint64(args[6])<<32|uint64(args[7]), 0, 0)
	dx, dy = memory[:n], memory[n:2*n]
	for i, d := range [2][]float32{dx, dy} {
		for k := range d {
			d[k] = float32(r.Float64()*2 - 1)
		}
		if args[2] > 0 {
			b.blur(d, elasticKernel(args[2+i]), args[2], args[3])
		}
		alpha, size := float32(args[i]), float32([2]int{w, h}[i])
		for k, v := range d {
			d[k] = float32(alpha*v) / size
		}
	}
	return dx, dy
}

// room shapes other like m, and returns n float32 numbers of memory after other's pixels. Scratch
// memory there is reused with the image, so that an elastic transform allocates nothing in steady
// state. The numbers begin at a multiple of 8 bytes.
func room(m, other *Image, n int) []float32 {
	first := (len(m.Pix) + 7) &^ 7
	other.Pix = pixel.Grow(other.Pix, first+4*n)
	numbers := tensor.As[float32](tensor.Of(tensor.Spec{DType: tensor.Float32}, n, other.Pix[first:]))
	other.Reshape(m.W, m.H, m.C)
	return numbers
}

// elasticBlur smooths w x h numbers along rows, then along columns, which is much less work than a
// square kernel. Numbers beyond the edge are reflections.
type elasticBlur struct {
	w, h    int
	between []float32 // w x h numbers
	memory  []float32 // two kernels, and a row that is reflected at both ends
}

func (b *elasticBlur) blur(d []float32, size int, sigmaX, sigmaY float64) {
	half := size / 2
	across, down, row := b.memory[:size], b.memory[size:2*size], b.memory[2*size:][:b.w+2*half]
	gaussian(across, sigmaX)
	gaussian(down, sigmaY)
	for y := range b.h {
		line := d[y*b.w:][:b.w]
		for i := range row {
			row[i] = line[reflected(i-half, b.w)]
		}
		to := b.between[y*b.w:][:b.w]
		clear(to)
		for j, k := range across {
			addScaled(to, row[j:], k)
		}
	}
	clear(d)
	for y := range b.h {
		for j, k := range down {
			addScaled(d[y*b.w:][:b.w], b.between[reflected(y+j-half, b.h)*b.w:], k)
		}
	}
}

// addScaled adds k * src[i] to dst[i]. The product is rounded on its own, as float32 arithmetic
// without fusing does.
func addScaled(dst, src []float32, k float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] += float32(k * v)
	}
}

// displace fills each pixel of dst from the place in src that its distances lead to. The distances
// are in halves of width and height. The arithmetic is the float32 of torch's grid_sample with zero
// padding, and torchvision's filling, so that results equal torchvision's.
func displace(dst, src *Image, dx, dy []float32, f kernel.Filter, fill [3]byte) {
	across, down := centers(dst.W), centers(dst.H)
	for y := range dst.H {
		out, gy := dst.Row(y), down.at(y)
		for x := range dst.W {
			u := toPixels(across.at(x)+dx[y*dst.W+x], dst.W)
			v := toPixels(gy+dy[y*dst.W+x], dst.H)
			px := out[x*dst.C:][:dst.C]
			if f == kernel.Nearest {
				pick(px, src, int(math.RoundToEven(float64(u))), int(math.RoundToEven(float64(v))), fill)
			} else {
				blendZeros(px, src, u, v, fill)
			}
		}
	}
}

// toPixels converts a position between -1 and 1 to a position in n pixels. It is rounded once,
// because torch uses a fused multiplication and addition there.
func toPixels(at float32, n int) float32 {
	return float32(float64(at+1)*(float64(n)/2) - 0.5)
}

// centers returns the positions of n pixel centers between -1 and 1.
func centers(n int) linspace {
	last := float64(n-1) / float64(n)
	return newLinspace(-last, last, n)
}

// blendZeros is a bilinear filter in which pixels outside of src count as zeros. The weight of the
// pixels inside is the mask: the rest of the result is fill.
func blendZeros(dst []byte, src *Image, u, v float32, fill [3]byte) {
	x0, y0 := float32(math.Floor(float64(u))), float32(math.Floor(float64(v)))
	right, below := u-x0, v-y0
	left, above := 1-right, 1-below
	weights := [4]float32{left * above, right * above, left * below, right * below}
	x, y := int(x0), int(y0)
	var sums [3]float32
	mask := float32(0)
	for i, w := range weights {
		x, y := x+i%2, y+i/2
		if x < 0 || y < 0 || x >= src.W || y >= src.H {
			continue
		}
		mask += w
		for c, p := range src.Pix[y*src.Stride+x*src.C:][:src.C] {
			sums[c] = float32(float64(p)*float64(w) + float64(sums[c])) // fused, too
		}
	}
	for c := range dst {
		s := float32(sums[c]*mask) + float32((1-mask)*float32(fill[c]))
		dst[c] = byte(math.RoundToEven(float64(min(max(s, 0), 255))))
	}
}
