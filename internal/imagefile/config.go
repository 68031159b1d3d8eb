package imagefile

import (
	"errors"
	"fmt"
	"image"
	"image/color"

	"github.com/penstock/penstock/tensor"
)

// DefaultMaxPixels is Pillow's limit for a single image (a third of it only warns there).
const DefaultMaxPixels = 178956970

// Config is what an image's header says.
type Config struct {
	Format        Format
	Width, Height int          // pixels as stored, see Opened
	Model         string       // "gray", "graya", "rgb", "rgba", "palette", "ycbcr", "cmyk", "ycck", or "channels" of unknown meaning
	Channels      int          // stored samples of a pixel; 1 for a palette
	Bits          int          // of a sample as stored
	Orientation   int          // EXIF, 1 to 8; 1 if the file has none
	Transparent   bool         // the file declares transparency, in whatever way its format has
	DType         tensor.DType // of a sample, Uint8 for up to 8 bits
}

// ReadConfig reads an image's header alone: it decodes no pixels and allocates nothing
// that depends on the size the header claims. A size of zero is an error; a large one is
// not, see Config.Check.
func ReadConfig(data []byte) (Config, error) {
	f := Sniff(data)
	if f == "" {
		return Config{}, notImage(data)
	}
	c, err := readHeader(f, data)
	if err != nil {
		return Config{}, err
	}
	c.Format = f
	if c.Width <= 0 || c.Height <= 0 {
		return Config{}, corrupt(f, "the header says %dx%d pixels", c.Width, c.Height)
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

// Opened returns the size that the image has once it is opened with Options.Orient as given.
func (c Config) Opened(orient bool) (w, h int) {
	if c.turned(orient) && c.Orientation >= 5 {
		return c.Height, c.Width
	}
	return c.Width, c.Height
}

// turned reports whether Open applies the orientation: where it is asked to, and to TIFF,
// as Pillow does.
func (c Config) turned(orient bool) bool {
	return c.Orientation > 1 && (orient || c.Format == TIFF)
}

// Check returns an ErrTooLarge if the image has more than maxPixels pixels; 0 stands for
// DefaultMaxPixels.
func (c Config) Check(maxPixels int) error {
	if maxPixels == 0 {
		maxPixels = DefaultMaxPixels
	}
	if c.Height <= maxPixels/c.Width {
		return nil
	}
	return &Error{c.Format, ErrTooLarge, fmt.Sprintf(
		"image size %dx%d (%d pixels) exceeds limit of %d pixels, could be decompression bomb DOS attack; if it is meant to be that large, raise the limit (--max-pixels, Images.MaxPixels)",
		c.Width, c.Height, uint64(c.Width)*uint64(c.Height), maxPixels)}
}

func readHeader(f Format, data []byte) (c Config, err error) {
	switch f {
	case JPEG:
		h, err := parseJPEG(data)
		return h.config(), err
	case PNG:
		return pngConfig(data)
	case GIF:
		h, err := parseGIF(data)
		return Config{Width: h.w, Height: h.h, Model: "palette", Channels: 1, Bits: 8, Transparent: h.clear}, err
	case WebP:
		return webpConfig(data)
	case PNM:
		p, err := parsePNM(data)
		return p.config(), err
	case BMP:
		h, err := parseBMP(data)
		if err != nil {
			return c, err
		}
		return h.config(), nil
	case TIFF:
		return tiffConfig(data)
	}
	return c, errors.New("no reader of headers for this format")
}

func fromStd(ic image.Config) Config {
	c := Config{Width: ic.Width, Height: ic.Height, Model: "rgba", Channels: 4, Bits: 8}
	switch ic.ColorModel {
	case color.GrayModel:
		c.Model, c.Channels = "gray", 1
	case color.Gray16Model:
		c.Model, c.Channels, c.Bits = "gray", 1, 16
	case color.YCbCrModel:
		c.Model, c.Channels = "ycbcr", 3
	case color.CMYKModel:
		c.Model = "cmyk"
	case color.RGBA64Model, color.NRGBA64Model:
		c.Bits = 16
	}
	if _, ok := ic.ColorModel.(color.Palette); ok {
		c.Model, c.Channels = "palette", 1
	}
	return c
}

// guard runs a decoder of another library on bytes that nobody has checked: its panic
// becomes an error, and its errors get this package's form.
func guard(f Format, decode func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = corrupt(f, "the decoder failed on it (%v)", p)
		}
	}()
	if err := decode(); err != nil {
		return fromLibrary(f, err)
	}
	return nil
}
