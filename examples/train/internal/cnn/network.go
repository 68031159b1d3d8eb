// Package cnn is a small convolutional network for classifying images, with its training:
// enough of one to learn from a dataset in plain Go, and small enough to read.
//
// Images are float32, pixel by pixel, a pixel's channels side by side. Everything is
// deterministic: the same configuration, data and order of steps give the same bits on one
// kind of machine, whatever the number of its cores.
package cnn

import (
	"math"
	"math/rand/v2"
)

// Config describes a network. All fields must be set.
type Config struct {
	Channels, Height, Width int    // of an image
	Classes                 int    //
	Seed                    uint64 // of the first weights
}

// Network is a few 3x3 convolutions, each with a ReLU, that halve the image until it is small, a
// summary of their outputs, and a dense layer that turns it into a score for each class. It serves
// one goroutine and uses all cores.
type Network struct {
	cfg    Config
	convs  []*conv
	pool   pool
	dense  *dense
	params [][]float32 // weights and biases, layer by layer
	grads  [][]float32
	adam   adam
	lanes  []*lane
}

const (
	firstWidth = 16 // channels after the first convolution; they double with each further one
	mostWidth  = 64
	lastSide   = 8  // convolutions follow each other until both sides are at most this
	smallSide  = 32 // the first convolution halves images that are larger, too
)

// New returns a network with random weights.
func New(cfg Config) *Network {
	n := &Network{cfg: cfg}
	rng := rand.New(rand.NewPCG(cfg.Seed, 0x6e6e))
	at, stride := size{cfg.Height, cfg.Width, cfg.Channels}, 2
	if max(at.h, at.w) <= smallSide {
		stride = 1
	}
	for width := firstWidth; len(n.convs) == 0 || max(at.h, at.w) > lastSide; width = min(2*width, mostWidth) {
		l := newConv(rng, at, width, stride)
		if len(n.convs) > 0 {
			l.turned = make([]float32, len(l.weight))
		}
		n.convs = append(n.convs, l)
		n.params = append(n.params, l.weight, l.bias)
		at, stride = l.out, 2
	}
	n.pool = pool{at}
	n.dense = newDense(rng, n.pool.features(), cfg.Classes)
	n.params = append(n.params, n.dense.weight, n.dense.bias)
	n.grads = like(n.params)
	n.adam = adam{mean: like(n.params), square: like(n.params)}
	for range laneCount {
		n.lanes = append(n.lanes, newLane(n))
	}
	return n
}

// random returns count normal numbers of variance 2/fanIn: He et al., "Delving Deep into
// Rectifiers" (2015).
func random(rng *rand.Rand, count, fanIn int) []float32 {
	out := make([]float32, count)
	scale := math.Sqrt(2 / float64(fanIn))
	for i := range out {
		out[i] = float32(rng.NormFloat64() * scale)
	}
	return out
}

// like returns zeros of the same lengths.
func like(params [][]float32) [][]float32 {
	out := make([][]float32, len(params))
	for i, p := range params {
		out[i] = make([]float32, len(p))
	}
	return out
}

// ImageLen returns how many values an image has.
func (n *Network) ImageLen() int { return n.cfg.Channels * n.cfg.Height * n.cfg.Width }

// Params returns how many numbers the network learns.
func (n *Network) Params() int {
	count := 0
	for _, p := range n.params {
		count += len(p)
	}
	return count
}
