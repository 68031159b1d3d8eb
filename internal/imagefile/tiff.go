package imagefile

import (
	"bytes"
	"image"

	"golang.org/x/image/tiff"
)

func tiffConfig(data []byte) (c Config, err error) {
	err = guard(TIFF, func() error {
		ic, err := tiff.DecodeConfig(bytes.NewReader(data))
		c = fromStd(ic)
		return err
	})
	c.Orientation, c.Transparent = exifOrientation(data), tiffTransparent(data)
	return c, err
}

// decodeTIFF decodes the first image. The library makes a negative of fax codes where it is
// black that is zero (TIFF 6.0 sections 10 and 11), and of those with a palette.
func decodeTIFF(data []byte) (image.Image, error) {
	const (
		tagCompression = 259
		tagPhotometric = 262
		group3, group4 = 3, 4
		whiteIsZero    = 0
	)
	m, err := tiff.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	compression, _ := tiffInteger(data, tagCompression)
	photometric, ok := tiffInteger(data, tagPhotometric)
	if (compression == group3 || compression == group4) && ok && photometric != whiteIsZero {
		negative(m)
	}
	return m, nil
}

// negative inverts an image of bits.
func negative(m image.Image) {
	switch m := m.(type) {
	case *image.Gray:
		for i, v := range m.Pix {
			m.Pix[i] = ^v
		}
	case *image.Paletted:
		for i, v := range m.Pix {
			m.Pix[i] = v ^ 1
		}
	}
}
