package cnn

// pool sums up a feature map, whatever its size, by the mean and the largest value of each
// channel: over the whole map, and over each of its quarters. So it matters little where
// exactly in an image something is, and fewer images are enough to learn from. See He et
// al., "Spatial Pyramid Pooling" (2014).
type pool struct{ in size }

// parts lists the parts of a map, in halves of its sides: top, left, extent.
var parts = [...][3]int{{0, 0, 2}, {0, 0, 1}, {0, 1, 1}, {1, 0, 1}, {1, 1, 1}}

// poolState is the state that one image's forward pass keeps for the backward pass.
type poolState struct {
	out  []float32 // for each part the means of all channels, then the largest values
	dOut []float32
	at   []int // where in the input each of the largest values is
}

// features returns how many values come out.
func (l pool) features() int { return 2 * len(parts) * l.in.c }

func (l pool) newState() *poolState {
	n := l.features()
	return &poolState{out: make([]float32, n), dOut: make([]float32, n), at: make([]int, n)}
}

func (l pool) forward(s *poolState, in []float32) {
	clear(s.out)
	l.each(func(out, from, pixels int, first bool) {
		for j, v := range in[from:][:l.in.c] {
			s.out[out+j] += v / float32(pixels)
			if most := out + l.in.c + j; first || v > s.out[most] {
				s.out[most], s.at[most] = v, from+j
			}
		}
	})
}

// backward takes s.dOut and sets dIn.
func (l pool) backward(s *poolState, dIn []float32) {
	clear(dIn)
	l.each(func(out, from, pixels int, first bool) {
		for j, d := range s.dOut[out:][:l.in.c] {
			dIn[from+j] += d / float32(pixels)
			if most := out + l.in.c + j; first {
				dIn[s.at[most]] += s.dOut[most]
			}
		}
	})
}

// each visits all pixels of all parts: where the part's values begin in the output, where
// the pixel's do in the input, how many pixels the part has, and whether this is its first.
func (l pool) each(visit func(out, from, pixels int, first bool)) {
	for i, p := range parts {
		top, bottom := p[0]*l.in.h/2, ((p[0]+p[2])*l.in.h+1)/2
		left, right := p[1]*l.in.w/2, ((p[1]+p[2])*l.in.w+1)/2
		for y := top; y < bottom; y++ {
			for x := left; x < right; x++ {
				visit(i*2*l.in.c, (y*l.in.w+x)*l.in.c, (bottom-top)*(right-left), y == top && x == left)
			}
		}
	}
}
