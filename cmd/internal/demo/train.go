package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// The hyperparameters: epochs passes over the split train, each followed by a pass over the split
// test, and a learning rate that falls linearly from rate towards 0. batch is how many records the
// loader returns at a time; the network takes a step for each image.
const (
	epochs = 30
	batch  = 32
	rate   = 0.01
)

// train teaches a network the classes, and prints how many images of the split test, which the
// network is never trained on, it classifies right.
func train(ctx context.Context, path string, out io.Writer) (err error) {
	learn, closeLearn, err := open(path, "train", sampler.Shuffle{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLearn()) }()
	test, closeTest, err := open(path, "test", sampler.Sequential{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTest()) }()
	n := newNetwork(3*side*side, 64, len(classes))
	for epoch := range epochs {
		_, _, err := n.pass(ctx, learn, epoch, rate*float32(epochs-epoch)/epochs)
		if err != nil {
			return err
		}
		right, of, err := n.pass(ctx, test, 0, 0)
		if err != nil {
			return err
		}
		if epoch%5 == 4 {
			fmt.Fprintf(out, "epoch %2d: %d of %d held out images right\n", epoch+1, right, of)
		}
	}
	return nil
}

// open returns a loader over a split, and a function that closes the loader and then its dataset.
func open(path, split string, order sampler.Sampler) (*loader.Loader, func() error, error) {
	ds, err := mmapds.Open(path, mmapds.WithSplit(split))
	if err != nil {
		return nil, nil, err
	}
	ld, err := loader.New(ds, loader.Options{BatchSize: batch, Sampler: order, Seed: 1})
	if err != nil {
		return nil, nil, errors.Join(err, ds.Close())
	}
	return ld, func() error { return errors.Join(ld.Close(), ds.Close()) }, nil
}

// network is a perceptron with one hidden layer, a ReLU after it, and softmax cross-entropy as its
// loss. The slices are buffers for one image: activations and their gradients.
type network struct {
	first, second layer
	hidden, out   []float32
	dHidden, dOut []float32
}

// layer computes out = weights · in + bias. weights has out rows of in numbers.
type layer struct {
	in, out int
	weights []float32
	bias    []float32
}

// newNetwork returns a network with random weights, the same in every run.
func newNetwork(in, hidden, out int) *network {
	rng := rand.New(rand.NewPCG(1, 2))
	return &network{
		first: newLayer(in, hidden, rng), second: newLayer(hidden, out, rng),
		hidden: make([]float32, hidden), out: make([]float32, out), dHidden: make([]float32, hidden),
		dOut: make([]float32, out),
	}
}

// newLayer returns a layer whose weights have the variance 1/in, so that the outputs begin with
// about the variance of the inputs.
func newLayer(in, out int, rng *rand.Rand) layer {
	l := layer{in, out, make([]float32, in*out), make([]float32, out)}
	for i := range l.weights {
		l.weights[i] = float32(rng.NormFloat64() * math.Sqrt(1/float64(in)))
	}
	return l
}

// forward computes the outputs y of inputs x.
func (l *layer) forward(x, y []float32) {
	for o := range l.out {
		w, sum := l.weights[o*l.in:][:l.in], l.bias[o]
		for i, v := range x {
			sum += w[i] * v
		}
		y[o] = sum
	}
}

// backward takes a gradient step of size step and adds the gradient of the inputs to dx, unless dx
// is nil. x are the inputs and dy is the gradient of the outputs. The inputs' gradient is computed
// with the weights before the step.
func (l *layer) backward(x, dy, dx []float32, step float32) {
	for o := range l.out {
		w, g := l.weights[o*l.in:][:l.in], dy[o]
		if g == 0 {
			continue
		}
		for i := range dx {
			dx[i] += g * w[i]
		}
		for i, v := range x {
			w[i] -= step * g * v
		}
		l.bias[o] -= step * g
	}
}

// pass runs an epoch of the loader, and takes a step for every image unless rate is 0. It returns
// how many images the network classified right, out of how many.
func (n *network) pass(ctx context.Context, ld *loader.Loader, epoch int, rate float32) (right, of int, err error) {
	x := make([]float32, n.first.in)
	for b, err := range ld.Epoch(ctx, epoch) {
		if err != nil {
			return right, of, err
		}
		images, labels := tensor.As[uint8](b.Field("images")), tensor.As[int64](b.Field("labels"))
		for i, label := range labels {
			for k, v := range images[i*len(x):][:len(x)] {
				x[k] = float32(v)/127.5 - 1
			}
			if n.see(x, int(label), rate) {
				right++
			}
			of++
		}
	}
	return right, of, nil
}

// see reports whether the network classifies an image as its label. If rate is not 0, it then takes
// a gradient step. dOut first has the exponentials of the outputs, then softmax minus the one-hot
// label, which is the gradient of the loss. Gradients behind a ReLU that was cut off are 0.
func (n *network) see(x []float32, label int, rate float32) bool {
	n.first.forward(x, n.hidden)
	for i, v := range n.hidden {
		n.hidden[i] = max(v, 0)
	}
	n.second.forward(n.hidden, n.out)
	best, sum := 0, float32(0)
	for i, v := range n.out {
		if v > n.out[best] {
			best = i
		}
		n.dOut[i] = float32(math.Exp(float64(v)))
		sum += n.dOut[i]
	}
	if rate == 0 {
		return best == label
	}
	for i := range n.dOut {
		n.dOut[i] /= sum
	}
	n.dOut[label]--
	clear(n.dHidden)
	n.second.backward(n.hidden, n.dOut, n.dHidden, rate)
	for i, v := range n.hidden {
		if v == 0 {
			n.dHidden[i] = 0
		}
	}
	n.first.backward(x, n.dHidden, nil, rate)
	return best == label
}
