package cnn

import "math/rand/v2"

// size is the extent of an image inside the network: h x w pixels of c channels, a pixel's
// channels side by side.
type size struct{ h, w, c int }

func (s size) elems() int { return s.h * s.w * s.c }

// conv is a 3x3 convolution with a border of zeros, a bias and a ReLU. It halves each side,
// rounding up, where its stride is 2.
type conv struct {
	in, out size
	stride  int
	weight  []float32 // taps x out.c
	bias    []float32 // out.c
	turned  []float32 // out.c x taps, see turn; nil in the first layer, whose input needs no gradient
}

func newConv(rng *rand.Rand, in size, width, stride int) *conv {
	l := &conv{in: in, out: size{half(in.h, stride), half(in.w, stride), width}, stride: stride}
	l.weight, l.bias = random(rng, l.taps()*width, l.taps()), make([]float32, width)
	return l
}

// half returns how many steps of that stride a side has.
func half(side, stride int) int { return (side + stride - 1) / stride }

// taps returns how many inputs an output depends on.
func (l *conv) taps() int { return 9 * l.in.c }

// convState is the state that one image's forward pass keeps for the backward pass.
type convState struct {
	patches []float32 // out.h*out.w x taps: the inputs of each output pixel
	out     []float32
	dOut    []float32 // gradient of the loss by out
	dPatch  []float32 // by patches
}

func (l *conv) newState() *convState {
	pixels := l.out.h * l.out.w
	return &convState{
		patches: make([]float32, pixels*l.taps()),
		out:     make([]float32, l.out.elems()),
		dOut:    make([]float32, l.out.elems()),
		dPatch:  make([]float32, pixels*l.taps()),
	}
}

// turn transposes the weights for backward; it must be called after each change of the
// weights.
func (l *conv) turn() {
	if l.turned != nil {
		transpose(l.turned, l.weight, l.taps(), l.out.c)
	}
}

// forward computes s.out for one image.
func (l *conv) forward(s *convState, in []float32) {
	l.gather(s.patches, in)
	for at := 0; at < len(s.out); at += l.out.c {
		copy(s.out[at:], l.bias)
	}
	addProduct(s.out, s.patches, l.weight, l.out.h*l.out.w, l.out.c, l.taps(), l.taps(), 1)
	for i, v := range s.out {
		s.out[i] = max(v, 0)
	}
}

// backward takes s.dOut and adds to the gradients of weight and bias, and to dIn, the
// gradient by the input, unless that is nil.
func (l *conv) backward(s *convState, dWeight, dBias, dIn []float32) {
	for i, v := range s.out {
		if v == 0 {
			s.dOut[i] = 0
		}
	}
	pixels := l.out.h * l.out.w
	for p := range pixels {
		addRow(dBias, 1, s.dOut[p*l.out.c:])
	}
	addProduct(dWeight, s.patches, s.dOut, l.taps(), l.out.c, pixels, 1, l.taps())
	if dIn == nil {
		return
	}
	clear(s.dPatch)
	addProduct(s.dPatch, s.dOut, l.turned, pixels, l.taps(), l.out.c, l.out.c, 1)
	l.scatter(dIn, s.dPatch)
}

// gather writes the 3x3 surroundings of each output pixel as a row of patches.
func (l *conv) gather(patches, in []float32) {
	l.each(func(at, from, n int) {
		if from < 0 {
			clear(patches[at : at+n])
			return
		}
		copy(patches[at:at+n], in[from:])
	})
}

// scatter is the way back: it adds each row to the surroundings it was taken from.
func (l *conv) scatter(dIn, dPatch []float32) {
	l.each(func(at, from, n int) {
		if from >= 0 {
			addRow(dIn[from:from+n], 1, dPatch[at:])
		}
	})
}

// each visits the runs of a patch matrix: n of its elements, from at on, are the
// elements of the input from from on, or are outside of it if from is negative.
func (l *conv) each(visit func(at, from, n int)) {
	at, c := 0, l.in.c
	for y := range l.out.h {
		for x := range l.out.w {
			for ky := y*l.stride - 1; ky <= y*l.stride+1; ky++ {
				for kx := x*l.stride - 1; kx <= x*l.stride+1; kx++ {
					from := (ky*l.in.w + kx) * c
					if ky < 0 || ky >= l.in.h || kx < 0 || kx >= l.in.w {
						from = -1
					}
					visit(at, from, c)
					at += c
				}
			}
		}
	}
}
