package transforms

import "image"

// Image is an 8-bit image: rows top to bottom, pixels left to right, channels interleaved.
// Its memory belongs to whoever made it.
type Image struct {
	Pix    []byte // pixel (x, y) starts at y*Stride + x*Step
	W, H   int    // pixels
	C      int    // channels: 1 gray, 3 RGB
	Step   int    // bytes from a pixel to the next: C, or 4 for RGB with a fourth byte that means nothing
	Stride int    // bytes from a row to the next
}

// A Source is an image whose pixels may not be decoded yet: an Image is one, and so is a
// JPEG that is decoded only where a crop needs it. A Source serves one goroutine.
type Source interface {
	// Size returns width, height (pixels) and channels (1 or 3).
	Size() (w, h, c int)

	// Scan calls f with strips of consecutive rows that together are the rectangle r,
	// top down, each row once. A strip's column 0 is r.Min.X, and y is the row of the
	// image that its row 0 is. The strip is valid during the call. Scan may be called
	// again, then it starts over. An error of f ends the scan and is returned as it is.
	Scan(r image.Rectangle, f func(y int, strip Image) error) error
}
