package pixel

import (
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// Layout is the order of a record's axes.
type Layout uint8

// The layouts. HWC is how images are decoded, CHW what most training code wants.
const (
	HWC Layout = iota
	CHW
)

// String returns "hwc" or "chw".
func (l Layout) String() string {
	if l == CHW {
		return "chw"
	}
	return "hwc"
}

// MarshalText writes "hwc" or "chw".
func (l Layout) MarshalText() ([]byte, error) {
	if l > CHW {
		return nil, fmt.Errorf("transforms: layout %d has no name", uint8(l))
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads "hwc" or "chw".
func (l *Layout) UnmarshalText(b []byte) error {
	switch string(b) {
	case "hwc":
		*l = HWC
	case "chw":
		*l = CHW
	default:
		return fmt.Errorf("unknown layout %q; known are hwc, chw", b)
	}
	return nil
}

// Info says what an image or a record is without its pixels.
type Info struct {
	W, H, C int          // pixels, and channels: 1 gray or 3 RGB
	DType   tensor.DType // Invalid means Uint8
	Layout  Layout
}

// Shape returns (C, H, W) or (H, W, C), as Layout says. A gray record keeps its axis C of
// length 1, as in torchvision.
func (i Info) Shape() tensor.Shape {
	if i.Layout == CHW {
		return tensor.Shape{i.C, i.H, i.W}
	}
	return tensor.Shape{i.H, i.W, i.C}
}

// Bytes returns the length of the record.
func (i Info) Bytes() int { return i.W * i.H * i.C * i.dtype().Size() }

// String writes type and shape: "uint8 (3, 224, 224)".
func (i Info) String() string { return i.dtype().String() + " " + i.Shape().String() }

func (i Info) dtype() tensor.DType {
	if i.DType == tensor.Invalid {
		return tensor.Uint8
	}
	return i.DType
}
