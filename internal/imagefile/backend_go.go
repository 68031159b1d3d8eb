//go:build !turbo || !cgo

package imagefile

import "github.com/penstock/penstock/transforms"

// Backend names the JPEG decoder that is built in, with its version.
func Backend() string { return "built-in 1 (pure Go)" }

// backendState is what the back end keeps from image to image.
type backendState struct{}

func (*backendState) close() {}

func (d *Decoder) openJPEG(h *jpegHeader, data []byte) (transforms.Source, error) {
	return d.openGo(h, data)
}
