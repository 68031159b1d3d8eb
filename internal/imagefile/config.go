package imagefile

import (
	"errors"

	"github.com/penstock/penstock/internal/imagefile/format"

	"github.com/penstock/penstock/internal/imagefile/jpeg"

	"github.com/penstock/penstock/tensor"
)

// File is an image file whose header was parsed. The data belong to the caller.
type File struct {
	Config format.Config
	data   []byte
}

// Parse is ReadConfig for a file that a Decoder may open afterwards without parsing the header
// again. The data must not change in between.
func Parse(data []byte) (File, error) {
	c, err := ReadConfig(data)
	return File{c, data}, err
}

// ReadConfig reads the header of an image. It decodes no pixels, and allocates nothing that depends
// on the size in the header, as a hostile header may claim any size. A size of zero is an error. A
// large size is not: callers limit it by Config.Check.
func ReadConfig(data []byte) (format.Config, error) {
	f := Sniff(data)
	if f == "" {
		return format.Config{}, notImage(data)
	}
	c, err := readHeader(f, data)
	if err != nil {
		return format.Config{}, err
	}
	c.Format = f
	if c.Width <= 0 || c.Height <= 0 {
		return format.Config{}, format.Corrupt(f, "the header says %dx%d pixels", c.Width, c.Height)
	}
	if c.Orientation == 0 {
		c.Orientation = 1
	}
	if c.DType == tensor.Invalid {
		if c.DType = tensor.Uint8; c.Bits > 8 {
			c.DType = tensor.Uint16
		}
	}
	return c, nil
}

// readHeader reads the header of a file of a known format.
func readHeader(f format.Format, data []byte) (c format.Config, err error) {
	switch f {
	case format.JPEG:
		return jpeg.Config(data)
	case format.PNG:
		return pngConfig(data)
	case format.GIF:
		return gifConfig(data)
	case format.WebP:
		return webpConfig(data)
	case format.PNM:
		return pnmConfig(data)
	case format.BMP:
		return bmpConfig(data)
	case format.TIFF:
		return tiffConfig(data)
	}
	return c, errors.New("no reader of headers for this format")
}
