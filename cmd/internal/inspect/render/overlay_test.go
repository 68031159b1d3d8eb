package render

import (
	"encoding/binary"
	"image"
	"image/color"
	"math"
	"slices"
	"testing"

	"golang.org/x/image/font/basicfont"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func bytesOf(list ...float32) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// An image of 10 by 10 pixels, drawn at 100 by 100, has each mark at its place.
func TestDraw(t *testing.T) {
	images := store.NewRagged("images", tensor.Uint8)
	images.Content = tensor.Image
	boxes, labels, points := store.NewRagged("boxes", tensor.Float32, 4), store.NewRagged("labels", tensor.Int64), store.NewRagged("points", tensor.Float32, 2, 3)
	masks, mask := store.NewRagged("masks", tensor.Uint8, 10, 10), store.NewField("mask", tensor.Uint8, 10, 10)
	boxes.Content, points.Content, masks.Content, mask.Content = tensor.Boxes, tensor.Keypoints, tensor.Mask, tensor.Mask
	labels.Classes, mask.Classes = []string{"cat", "dog"}, []string{"background", "cat", "dog"}
	for _, f := range []*store.Field{&boxes, &labels, &points, &masks} {
		f.Instances = "objects"
	}
	r := NewReader([]store.Field{images, boxes, labels, points, masks, mask}, "images")
	instance, classes := make([]byte, 100), make([]byte, 100)
	instance[55], classes[22], classes[23] = 1, 1, 255
	values := map[string][]byte{
		"boxes": bytesOf(1, 1, 9, 9), "labels": {1, 0, 0, 0, 0, 0, 0, 0}, "points": bytesOf(7, 3, 2, 0, 0, 0), "masks": instance, "mask": classes,
	}
	specs := map[string]tensor.Spec{"boxes": boxes.Spec, "labels": labels.Spec, "points": points.Spec, "masks": masks.Spec, "mask": mask.Spec}
	m, err := r.Read(func(name string) (tensor.Spec, []byte, error) { return specs[name], values[name], nil }, 10, 10)
	require.NoError(t, err)
	out := image.NewRGBA(image.Rect(0, 0, 120, 120))
	m.Draw(out, image.Rect(20, 20, 120, 120), basicfont.Face7x13)
	blended := func(c int) color.RGBA {
		p := Color(c)
		return color.RGBA{p.R / 2, p.G / 2, p.B / 2, 0}
	}
	for at, want := range map[image.Point]color.RGBA{
		{70, 30}: Color(1), {31, 70}: Color(1), {109, 70}: Color(1), {70, 109}: Color(1), // the edges of the box
		{75, 75}: blended(1), {45, 45}: blended(0), {55, 45}: {}, {85, 75}: {}, {90, 50}: Color(0), {20, 20}: {}, {10, 10}: {},
	} {
		if got := out.RGBAAt(at.X, at.Y); got != want {
			t.Errorf("at %v is %v, want %v", at, got, want)
		}
	}
	if got := r.Legend(); !slices.Equal(got, []Entry{{"cat", 0}, {"dog", 1}}) {
		t.Errorf("legend %v", got)
	}
	if NewReader([]store.Field{images, labels}, "images") != nil {
		t.Error("labels alone lie on the images")
	}
}
