package pixel

import "github.com/penstock/penstock/tensor"

// Raster is an image of any numeric type and any number of channels, interleaved, without gaps, little endian: what
// microscopes and satellites make.
type Raster struct {
	Pix     []byte
	W, H, C int
	DType   tensor.DType
}
