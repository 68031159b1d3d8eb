package loader_test

import (
	"bytes"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Pixels keep the layout in which they are stored, unless the pipeline chooses one.
func TestStoredLayoutIsKept(t *testing.T) {
	const c, h, w = 3, 2, 4
	stored := make([]byte, c*h*w) // (C, H, W)
	for i := range stored {
		stored[i] = byte(i)
	}
	at := func(k, y, x int) byte { return stored[(k*h+y)*w+x] }
	flipped := map[transforms.Layout][]byte{}
	for k := range c {
		for y := range h {
			for x := range w {
				flipped[transforms.CHW] = append(flipped[transforms.CHW], at(k, y, w-1-x))
			}
		}
	}
	for y := range h {
		for x := range w {
			for k := range c {
				flipped[transforms.HWC] = append(flipped[transforms.HWC], at(k, y, w-1-x))
			}
		}
	}
	one := 1.0
	flip := transforms.RandomHorizontalFlip{P: &one}
	for _, test := range []struct {
		ops  []transforms.Transform
		want transforms.Layout
	}{
		{[]transforms.Transform{flip}, transforms.CHW},
		{[]transforms.Transform{flip, transforms.ToLayout{Layout: transforms.CHW}}, transforms.CHW},
		{[]transforms.Transform{flip, transforms.ToLayout{Layout: transforms.HWC}}, transforms.HWC},
	} {
		p, err := transforms.Compose(test.ops...)
		require.NoError(t, err)
		in := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{c, h, w}, Layout: tensor.CHW}
		images := loader.Images{Pipeline: p}
		out, err := images.Output(in)
		require.NoError(t, err)
		do, err := images.Worker(in, 0)
		require.NoError(t, err)
		got := make([]byte, len(stored))
		require.NoError(t, do(got, stored, loader.Record{}))
		if (out.Layout == tensor.CHW) != (test.want == transforms.CHW) || !bytes.Equal(got, flipped[test.want]) {
			t.Errorf("%v: layout %v, %v, want layout %v, %v", test.ops, out.Layout, got, test.want, flipped[test.want])
		}
	}
}
