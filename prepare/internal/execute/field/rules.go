package field

import (
	"fmt"

	"github.com/penstock/penstock/internal/imagefile"
)

// Rules says how to treat images that are not plain 8-bit RGB or gray. The zero value is
// what DefaultConfig has: what Pillow's convert does, more than 8 bits aside.
type Rules struct {
	Orient      bool // turn and mirror as EXIF says; training code that uses Pillow or torchvision does not
	RefuseAlpha bool // images that declare transparency are bad samples; otherwise Alpha says how to treat it
	Alpha       imagefile.Alpha
	Deep        Depth
	RefuseCMYK  bool // CMYK images are bad samples; otherwise they become RGB by Pillow's formula
}

// Depth says how to treat images that 8-bit gray or RGB cannot hold: of more bits, of floats, of channels that are
// no colors.
type Depth uint8

// The values of Depth.
const (
	KeepDeep   Depth = iota // as arrays, of the type and channels that the files have
	HighByte                // 8 bits of 16; others are bad samples
	RefuseDeep              // bad samples
)

// Depths are the values of the flag --sixteen-bit.
var Depths = []string{KeepDeep: "kept", HighByte: "high-byte", RefuseDeep: "refused"}

// Alphas are the values of the flag --alpha that take images with transparency.
var Alphas = map[string]imagefile.Alpha{"dropped": imagefile.DropAlpha, "white": imagefile.OnWhite,
	"black": imagefile.OnBlack}

// AlphaName returns the value of the flag.
func (r Rules) AlphaName() string {
	for name, a := range Alphas {
		if a == r.Alpha && !r.RefuseAlpha {
			return name
		}
	}
	return "refused"
}

// keepPixels reports whether an image that is taken has the pixels that are stored in it.
func (r Rules) keepPixels() bool { return !r.Orient && r.Alpha == imagefile.DropAlpha }

// rules refuse files by their header.
type rules Rules

// check returns why an image must not be used, if so.
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
