package field

import (
	"fmt"

	"github.com/penstock/penstock/internal/imagefile"
)

// Rules says how to treat images that are not plain 8-bit RGB or gray. The zero value is the default: like Pillow's
// convert, but images of more than 8 bits keep them.
type Rules struct {
	Orient      bool // turn and mirror by EXIF; training code that uses Pillow or torchvision does not
	RefuseAlpha bool // an image that declares transparency is a bad sample; otherwise Alpha applies
	Alpha       imagefile.Alpha
	Deep        Depth
	RefuseCMYK  bool // a CMYK image is a bad sample; otherwise it becomes RGB by Pillow's formula
}

// Depth says how to treat images that 8-bit gray or RGB cannot hold: more bits, floats, or channels that are no
// colors.
type Depth uint8

// The values of Depth.
const (
	KeepDeep   Depth = iota // as arrays, in the type and with the channels of the file
	HighByte                // the high 8 bits of 16; other such images are bad samples
	RefuseDeep              // every such image is a bad sample
)

// Depths are the values of the flag --sixteen-bit.
var Depths = []string{KeepDeep: "kept", HighByte: "high-byte", RefuseDeep: "refused"}

// Alphas are the values of the flag --alpha that accept images with transparency.
var Alphas = map[string]imagefile.Alpha{"dropped": imagefile.DropAlpha, "white": imagefile.OnWhite,
	"black": imagefile.OnBlack}

// AlphaName returns the value of --alpha.
func (r Rules) AlphaName() string {
	for name, a := range Alphas {
		if a == r.Alpha && !r.RefuseAlpha {
			return name
		}
	}
	return "refused"
}

// keepPixels reports whether an accepted image keeps the pixels of its file.
func (r Rules) keepPixels() bool { return !r.Orient && r.Alpha == imagefile.DropAlpha }

// rules refuses files by their header, before they are decoded.
type rules Rules

// check returns why an image is refused, nil if it is not.
func (r rules) check(c imagefile.Config) error {
	switch {
	case r.RefuseAlpha && c.Transparent:
		return refused(c, "is transparent", "alpha dropped")
	case r.Deep == RefuseDeep && c.Bits > 8:
		return refused(c, fmt.Sprintf("has %d bits a sample", c.Bits), "sixteen-bit kept or high-byte")
	case r.Deep == RefuseDeep && c.Deep():
		return refused(c, fmt.Sprintf("has %d channels of %v", c.Channels, c.DType), "sixteen-bit kept")
	case r.RefuseCMYK && (c.Model == "cmyk" || c.Model == "ycck"):
		return refused(c, "is CMYK", "cmyk converted")
	}
	return nil
}

func refused(c imagefile.Config, what, flag string) error {
	return &imagefile.Error{Format: c.Format, Kind: imagefile.ErrUnsupported,
		Msg: fmt.Sprintf("%s, which is refused; --%s takes such images", what, flag)}
}
