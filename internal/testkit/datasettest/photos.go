package datasettest

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Photos is a dataset of n images that are kept as PNG files; the last one is corrupt.
func Photos(t testing.TB, n int) string {
	field := store.NewRagged("photo", tensor.Uint8)
	field.Content = tensor.Image
	return Build(t, store.Schema{Fields: []store.Field{field}}, n, store.Info{}, func(i int, values [][]byte) {
		img := image.NewRGBA(image.Rect(0, 0, 10+i, 6))
		for k := range img.Pix {
			img.Pix[k] = 255
		}
		img.Set(0, 0, color.RGBA{R: byte(i), A: 255})
		var b bytes.Buffer
		require.NoError(t, png.Encode(&b, img))
		if i == n-1 {
			b.Truncate(b.Len() / 2)
		}
		values[0] = b.Bytes()
	})
}
