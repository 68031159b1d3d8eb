package report

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

// Sizes of pictures in a report, in pixels of the longer side.
const (
	thumbnailPixels = 160 // larger pictures are reduced to this
	markedPixels    = 280 // pictures with boxes and masks on them
	smallPixels     = 64  // up to this size, pixels are kept as they are
)

// newThumbnail encodes a picture: a small one as PNG, because JPEG would blur the few pixels it
// has, others as JPEG.
func newThumbnail(img *image.RGBA) (Thumbnail, error) {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	var b bytes.Buffer
	if max(w, h) <= smallPixels {
		err := png.Encode(&b, img)
		return Thumbnail{Src: dataURL("image/png", b.Bytes()), Pixels: true}, err
	}
	if long := max(w, h); long > thumbnailPixels && long != markedPixels {
		small := image.NewRGBA(image.Rect(0, 0, max(1, w*thumbnailPixels/long), max(1, h*thumbnailPixels/long)))
		draw.CatmullRom.Scale(small, small.Rect, img, img.Rect, draw.Src, nil)
		img = small
	}
	err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 85})
	return Thumbnail{Src: dataURL("image/jpeg", b.Bytes())}, err
}

// dataURL returns a URL that contains the bytes, so that the page fetches nothing.
func dataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}
