package cnn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// sample returns a batch of random images and labels.
func sample(cfg Config, batch int) ([]float32, []int64) {
	r := rand.New(rand.NewPCG(5, 6))
	images := make([]float32, batch*cfg.Channels*cfg.Height*cfg.Width)
	for i := range images {
		images[i] = float32(r.NormFloat64())
	}
	labels := make([]int64, batch)
	for i := range labels {
		labels[i] = int64(r.IntN(cfg.Classes))
	}
	return images, labels
}

// Along any direction v the loss must change by gradient·v, for the parameters of each
// layer: odd sizes, one that the first layer halves, and gray images among them.
func TestGradient(t *testing.T) {
	for _, cfg := range []Config{
		{Channels: 3, Height: 8, Width: 8, Classes: 4, Seed: 1},
		{Channels: 1, Height: 11, Width: 7, Classes: 3, Seed: 2},
		{Channels: 2, Height: 5, Width: 34, Classes: 2, Seed: 3},
		{Channels: 3, Height: 3, Width: 1, Classes: 5, Seed: 4},
	} {
		t.Run(fmt.Sprint(cfg), func(t *testing.T) {
			n := New(cfg)
			images, labels := sample(cfg, 11)
			n.gradient(images, labels)
			for i := range n.params {
				for try := range uint64(3) {
					checkDirection(t, n, i, direction(n.grads[i], try), images, labels)
				}
			}
		})
	}
}

// direction returns a vector of length 1: the gradient's own, or a random one that is not
// at right angles to it.
func direction(grad []float32, try uint64) []float32 {
	v := slices.Clone(grad)
	if try > 0 {
		r := rand.New(rand.NewPCG(try, 9))
		for i, g := range grad {
			v[i] = float32(r.NormFloat64() * math.Sqrt(math.Abs(float64(g))))
			if r.IntN(4) > 0 && v[i]*g < 0 {
				v[i] = -v[i]
			}
		}
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func checkDirection(t *testing.T, n *Network, layer int, v, images []float32, labels []int64) {
	t.Helper()
	want := 0.0
	for j, g := range n.grads[layer] {
		want += float64(g) * float64(v[j])
	}
	const h = 1e-3
	saved := slices.Clone(n.params[layer])
	lossAt := func(step float32) float64 {
		for j := range v {
			n.params[layer][j] = saved[j] + step*v[j]
		}
		return n.Evaluate(images, labels).MeanLoss()
	}
	got := (lossAt(h) - lossAt(-h)) / (2 * h)
	copy(n.params[layer], saved)
	if diff := math.Abs(got - want); diff > 0.02*math.Abs(want)+1e-3 {
		t.Errorf("parameters %d: the loss changes by %.6f along a direction, the gradient says %.6f", layer, got, want)
	}
	if want == 0 {
		t.Errorf("parameters %d: the gradient is zero, which tests nothing", layer)
	}
}

// A network must be able to learn a batch of noise by heart.
func TestLearnsByHeart(t *testing.T) {
	cfg := Config{Channels: 1, Height: 9, Width: 10, Classes: 3, Seed: 7}
	n := New(cfg)
	images, labels := sample(cfg, 30)
	first := n.Evaluate(images, labels)
	for range 60 {
		n.Train(images, labels, 3e-3)
	}
	last := n.Evaluate(images, labels)
	if last.Right != 30 || last.MeanLoss() > 0.1 {
		t.Errorf("after 60 steps %d of 30 are right, mean loss %.3f (first %d, %.3f)", last.Right, last.MeanLoss(), first.Right, first.MeanLoss())
	}
}

func TestSameBitsForAnyCores(t *testing.T) {
	cfg := Config{Channels: 3, Height: 12, Width: 12, Classes: 4, Seed: 8}
	images, labels := sample(cfg, 21)
	train := func(cores int) *Network {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		n := New(cfg)
		for range 5 {
			n.Train(images, labels, 1e-2)
		}
		return n
	}
	one, many := train(1), train(5)
	for i := range one.params {
		if !slices.Equal(one.params[i], many.params[i]) {
			t.Errorf("parameters %d differ between 1 and 5 cores", i)
		}
	}
}

func TestSeedMatters(t *testing.T) {
	cfg := Config{Channels: 1, Height: 4, Width: 4, Classes: 2, Seed: 1}
	a := New(cfg)
	cfg.Seed = 2
	if b := New(cfg); slices.Equal(a.params[0], b.params[0]) {
		t.Error("two seeds give the same weights")
	}
}
