package cnn

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// laneCount is how many parts a batch is cut into. It is fixed, and their gradients are
// added in order, so that the number of cores changes no bit.
const laneCount = 8

// lane is the memory for one part of a batch.
type lane struct {
	states []*convState
	pooled *poolState
	scores []float32
	grads  [][]float32
	result Result
}

// Result sums up what a network said to some images.
type Result struct {
	Images int
	Right  int     // images whose class had the highest score
	Loss   float64 // the sum of their cross-entropies, in nats
}

// Add adds another result.
func (r *Result) Add(o Result) {
	r.Images += o.Images
	r.Right += o.Right
	r.Loss += o.Loss
}

// MeanLoss returns the cross-entropy of an image.
func (r Result) MeanLoss() float64 { return r.Loss / float64(max(1, r.Images)) }

// Accuracy returns the share of images that were right.
func (r Result) Accuracy() float64 { return float64(r.Right) / float64(max(1, r.Images)) }

func newLane(n *Network) *lane {
	w := &lane{pooled: n.pool.newState(), scores: make([]float32, n.cfg.Classes), grads: like(n.params)}
	for _, l := range n.convs {
		w.states = append(w.states, l.newState())
	}
	return w
}

// Train takes one step of Adam along the mean gradient of a batch, and returns the
// network's result before that step. images holds len(labels) images; labels are below
// Classes.
func (n *Network) Train(images []float32, labels []int64, rate float64) Result {
	r := n.gradient(images, labels)
	n.adam.step(n.params, n.grads, rate)
	return r
}

// Evaluate returns the network's result for a batch, and changes nothing.
func (n *Network) Evaluate(images []float32, labels []int64) Result {
	return n.spread(len(labels), func(w *lane, i int) { n.forward(w, n.image(images, i), labels[i]) })
}

// gradient sets n.grads to the mean over the batch.
func (n *Network) gradient(images []float32, labels []int64) Result {
	for _, l := range n.convs {
		l.turn()
	}
	for _, w := range n.lanes {
		for _, g := range w.grads {
			clear(g)
		}
	}
	r := n.spread(len(labels), func(w *lane, i int) {
		n.forward(w, n.image(images, i), labels[i])
		n.backward(w)
	})
	for i, g := range n.grads {
		clear(g)
		for _, w := range n.lanes {
			addRow(g, 1/float32(len(labels)), w.grads[i])
		}
	}
	return r
}

func (n *Network) image(images []float32, i int) []float32 {
	return images[i*n.ImageLen():][:n.ImageLen()]
}

// spread calls work for each image of a batch, in its lane, on all cores.
func (n *Network) spread(batch int, work func(w *lane, i int)) Result {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), laneCount) {
		wg.Go(func() {
			for k := int(next.Add(1)) - 1; k < laneCount; k = int(next.Add(1)) - 1 {
				n.lanes[k].result = Result{}
				for i := k * batch / laneCount; i < (k+1)*batch/laneCount; i++ {
					work(n.lanes[k], i)
				}
			}
		})
	}
	wg.Wait()
	var sum Result
	for _, w := range n.lanes {
		sum.Add(w.result)
	}
	return sum
}

// forward leaves in the lane all that backward needs, the gradient by the scores included.
func (n *Network) forward(w *lane, image []float32, label int64) {
	in := image
	for i, l := range n.convs {
		l.forward(w.states[i], in)
		in = w.states[i].out
	}
	n.pool.forward(w.pooled, in)
	n.dense.forward(w.scores, w.pooled.out)
	loss, right := softmaxLoss(w.scores, int(label))
	w.result.Images++
	w.result.Loss += loss
	if right {
		w.result.Right++
	}
}

func (n *Network) backward(w *lane) {
	last := len(n.convs) - 1
	n.dense.backward(w.scores, w.pooled.out, w.grads[2*last+2], w.grads[2*last+3], w.pooled.dOut)
	n.pool.backward(w.pooled, w.states[last].dOut)
	for i := last; i >= 0; i-- {
		var dIn []float32
		if i > 0 {
			dIn = w.states[i-1].dOut
			clear(dIn)
		}
		n.convs[i].backward(w.states[i], w.grads[2*i], w.grads[2*i+1], dIn)
	}
}
