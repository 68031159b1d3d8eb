package main

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/penstock/penstock/tensor"
)

// network looks at patches of 4 x 4 pixels, joins the patches to patches of 8 x 8, and all
// these to one vector: layers of matrix products, which the backend in Go is good at.
type network struct {
	layout  string
	scale   float64
	mean    []float64
	std     []float64
	classes int
}

func newNetwork(t *task) network {
	n := network{layout: t.image.Layout, scale: 255, mean: []float64{0.5, 0.5, 0.5}, std: []float64{0.25, 0.25, 0.25},
		classes: len(t.label.Classes)}
	if norm := t.image.Normalization; norm != nil {
		n.scale, n.mean, n.std = norm.Scale, norm.Mean, norm.Std
	}
	channels, _ := t.image.Channels()
	n.mean, n.std = n.mean[:channels], n.std[:channels]
	return n
}

// logits is the model function: images (B, C, H, W) or (B, H, W, C) to (B, classes).
func (n network) logits(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
	x := n.normalize(inputs[0])
	x = activation.Relu(layers.Dense(scope.In("patches"), join(x, 4), true, 64))
	x = activation.Relu(layers.Dense(scope.In("joined"), join(x, 2), true, 128))
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = activation.Relu(layers.Dense(scope.In("all"), x, true, 128))
	return []*graph.Node{layers.Dense(scope.In("classes"), x, true, n.classes)}
}

// normalize turns bytes into numbers around 0, of shape (B, H, W, C).
func (n network) normalize(x *graph.Node) *graph.Node {
	if n.layout == tensor.CHW {
		x = graph.TransposeAllAxes(x, 0, 2, 3, 1)
	}
	x = graph.MulScalar(graph.ConvertDType(x, dtypes.Float32), 1/n.scale)
	column := func(values []float64) *graph.Node {
		return graph.Reshape(graph.ConstAsDType(x.Graph(), dtypes.Float32, values), 1, 1, 1, len(values))
	}
	return graph.Div(graph.Sub(x, column(n.mean)), column(n.std))
}

// join makes one position out of every k x k.
func join(x *graph.Node, k int) *graph.Node {
	d := x.Shape().Dimensions
	x = graph.Reshape(x, d[0], d[1]/k, k, d[2]/k, k, d[3])
	x = graph.TransposeAllAxes(x, 0, 1, 3, 2, 4, 5)
	return graph.Reshape(x, d[0], d[1]/k, d[2]/k, k*k*d[3])
}

// count returns for how many images the network is right, and how many images there are,
// where the mask is true.
func (n network) count(scope *model.Scope, images, labels, mask *graph.Node) (hits, all *graph.Node) {
	guess := graph.ArgMax(n.logits(scope, []*graph.Node{images})[0], -1, dtypes.Int64)
	sum := func(x *graph.Node) *graph.Node { return graph.ReduceAllSum(graph.ConvertDType(x, dtypes.Int32)) }
	return sum(graph.LogicalAnd(graph.Equal(guess, graph.Reshape(labels, -1)), mask)), sum(mask)
}
