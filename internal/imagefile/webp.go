package imagefile

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"slices"

	"golang.org/x/image/webp"

	"github.com/penstock/penstock/internal/imagefile/format"
)

// chunks calls f with the chunks of a WebP file until f returns false. The file is RIFF: a head of
// 12 bytes, then chunks.
func chunks(data []byte, f func(id string, payload []byte) bool) {
	each(data[min(12, len(data)):], f)
}

// each calls f with the chunks in b until f returns false or a chunk is cut off. Payloads are
// padded to an even length.
func each(b []byte, f func(id string, payload []byte) bool) {
	for len(b) >= 8 {
		n := uint64(binary.LittleEndian.Uint32(b[4:]))
		if n > uint64(len(b)-8) || !f(string(b[:4]), b[8:8+n]) {
			return
		}
		b = b[min(uint64(len(b)), 8+n+n&1):]
	}
}

// webpOrientation returns the EXIF orientation of a WebP. Some writers put the head of JPEG's APP1 segment before the
// EXIF data, so both forms are tried.
func webpOrientation(data []byte) int {
	o := 1
	chunks(data, func(id string, p []byte) bool {
		if id == "EXIF" {
			if v := format.APP1Orientation(p); v != 0 {
				o = v
			} else {
				o = format.Orientation(p)
			}
		}
		return true
	})
	return o
}

// webpToRGBX writes an image of the library to dst: 4 bytes a pixel, the last one alpha, without
// gaps between rows. It reports whether it knows the type of m.
func webpToRGBX(dst []byte, m image.Image) bool {
	switch m := m.(type) {
	case *image.YCbCr:
		planesToRGBX(dst, m)
	case *image.NYCbCrA:
		planesToRGBX(dst, &m.YCbCr)
		alpha(dst, m)
	case *image.NRGBA:
		w := 4 * m.Rect.Dx()
		for y := range m.Rect.Dy() {
			copy(dst[y*w:][:w], m.Pix[y*m.Stride:])
		}
	default:
		return false
	}
	return true
}

// planesToRGBX converts the planes of a lossy WebP as libwebp does: limited-range BT.601
// (src/dsp/yuv.h) with "fancy" upsampling of chroma (src/dsp/upsampling.c). dst has 4 bytes a
// pixel, without gaps.
func planesToRGBX(dst []byte, m *image.YCbCr) {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	cw := (w + 1) / 2
	for y := range h {
		near := y / 2
		far := near + 1 - 2*(1-y&1) // the row above for even y, the row below for odd y
		far = max(0, min(far, (h+1)/2-1))
		c := chroma{
			u: m.Cb[near*m.CStride:][:cw], v: m.Cr[near*m.CStride:][:cw],
			fu: m.Cb[far*m.CStride:][:cw], fv: m.Cr[far*m.CStride:][:cw],
		}
		c.row(dst[y*w*4:][:w*4], m.Y[y*m.YStride:][:w])
	}
}

// alpha puts the alpha of m into the fourth byte of each pixel in dst.
func alpha(dst []byte, m *image.NYCbCrA) {
	w := m.Rect.Dx()
	for y := range m.Rect.Dy() {
		row := dst[y*w*4:][:w*4]
		for x, a := range m.A[y*m.AStride:][:w] {
			row[4*x+3] = a
		}
	}
}

// chroma has the chroma rows of one output row: u and v of the row that covers it, fu and fv of its
// neighbor on the other side.
type chroma struct{ u, v, fu, fv []byte }

// row converts one row of pixels. At the left and right border there is no chroma column on the
// other side.
func (c chroma) row(dst, luma []byte) {
	last := len(luma) - 1
	for x := range luma {
		near := x / 2
		far := near + 1 - 2*(1-x&1)
		if x == 0 || x == last && x&1 == 1 {
			far = -1 // see blend
		}
		webpPixel(dst[4*x:4*x+4], int(luma[x]), blend(c.u, c.fu, near, far), blend(c.v, c.fv, near, far))
	}
}

// blend is libwebp's 9:3:3:1 blend of four chroma samples, with its two roundings; at a border (far
// < 0) it is 3:1.
func blend(nearRow, farRow []byte, near, far int) int {
	a, b := int(nearRow[near]), int(farRow[near])
	if far < 0 {
		return (3*a + b + 2) >> 2
	}
	c, d := int(nearRow[far]), int(farRow[far])
	return ((a+b+c+d+8+2*(b+c))>>3 + a) >> 1
}

// webpPixel converts a pixel to RGB in libwebp's fixed-point arithmetic (src/dsp/yuv.h), bit for bit.
func webpPixel(dst []byte, y, u, v int) {
	mul := func(v, c int) int { return v * c >> 8 }
	clip := func(v int) byte { return byte(max(0, min(v>>6, 255))) }
	l := mul(y, 19077)
	dst[0] = clip(l + mul(v, 26149) - 14234)
	dst[1] = clip(l - mul(u, 6419) - mul(v, 13320) + 8708)
	dst[2] = clip(l + mul(u, 33050) - 17685)
	dst[3] = 255
}

// webpFrame is the first frame of an animated WebP, which the library refuses. VP8X and ANMF are
// its chunks in the container's specification.
type webpFrame struct {
	canvas image.Point
	at     image.Point // the frame's corner on the canvas
	still  []byte      // the frame as a WebP file of its own
	alpha  bool        // the canvas is transparent where the frame has no pixels
}

// uint24 reads three bytes, little endian.
func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// firstFrame returns the first frame of an animation, or nil for a still image.
func firstFrame(data []byte) (*webpFrame, error) {
	const (
		animated  = 1 << 1
		hasAlpha  = 1 << 4
		vp8xLen   = 10
		anmfLen   = 16
		truncated = "truncated: the file ends before the first frame does"
	)
	var f *webpFrame
	err := format.Corrupt(format.WebP, truncated)
	chunks(data, func(id string, p []byte) bool {
		switch {
		case f == nil && id == "VP8X" && len(p) >= vp8xLen && p[0]&animated != 0:
			f = &webpFrame{canvas: image.Pt(1+uint24(p[4:]), 1+uint24(p[7:])), alpha: p[0]&hasAlpha != 0}
			return true
		case f == nil:
			err = nil
			return false
		case id != "ANMF":
			return true
		case len(p) >= anmfLen:
			f.at = image.Pt(2*uint24(p), 2*uint24(p[3:]))
			f.still = still(p[anmfLen:], p[6:12])
			err = nil
		}
		return false
	})
	if f != nil && err == nil && f.still == nil {
		err = format.Corrupt(format.WebP, "the first frame holds no pixels")
	}
	return f, err
}

// still makes a WebP file from the chunks of a frame, which the library can decode. size is the
// frame's size as in ANMF. It returns nil if the chunks have no picture.
func still(chunks, size []byte) []byte {
	var alpha, picture []byte
	each(chunks, func(id string, p []byte) bool {
		switch id {
		case "ALPH":
			alpha = p
		case "VP8 ", "VP8L":
			picture = chunk(id, p)
		}
		return picture == nil
	})
	if picture == nil {
		return nil
	}
	body := []byte("WEBP")
	if alpha != nil {
		const hasAlpha = 1 << 4
		body = append(body, chunk("VP8X", append([]byte{hasAlpha, 0, 0, 0}, size...))...)
		body = append(body, chunk("ALPH", alpha)...)
	}
	return chunk("RIFF", append(body, picture...))
}

// chunk returns a RIFF chunk, padded to an even length.
func chunk(id string, payload []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(payload)))
	if b = append(b, payload...); len(payload)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

// webpDecode decodes a still image, or the first frame of an animation on a canvas that is black,
// and transparent if the file says that it has alpha.
func webpDecode(data []byte) (image.Image, error) {
	f, err := firstFrame(data)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return webp.Decode(bytes.NewReader(data))
	}
	m, err := webp.Decode(bytes.NewReader(f.still))
	if err != nil || m.Bounds() == image.Rect(0, 0, f.canvas.X, f.canvas.Y) {
		return m, err
	}
	return f.onCanvas(m)
}

// onCanvas puts the decoded frame m on the canvas.
func (f *webpFrame) onCanvas(m image.Image) (image.Image, error) {
	pixels := image.NewNRGBA(m.Bounds())
	if !webpToRGBX(pixels.Pix, m) {
		return nil, format.Unsupported(format.WebP, "pixels of type %T are not supported", m)
	}
	full := image.NewNRGBA(image.Rect(0, 0, f.canvas.X, f.canvas.Y))
	for i := 3; i < len(full.Pix) && !f.alpha; i += 4 {
		full.Pix[i] = 255
	}
	at := image.Rectangle{Max: pixels.Rect.Size()}.Add(f.at).Intersect(full.Rect)
	for y := at.Min.Y; y < at.Max.Y; y++ {
		copy(full.Pix[full.PixOffset(at.Min.X, y):][:4*at.Dx()], pixels.Pix[(y-at.Min.Y)*pixels.Stride:])
	}
	return full, nil
}

// webpConfig returns the properties of a WebP. The size of an animation is the size of its canvas,
// in which its first frame must lie.
func webpConfig(data []byte) (c format.Config, err error) {
	if size := uint64(binary.LittleEndian.Uint32(data[4:])) + 8; size > uint64(len(data)) {
		return format.Config{}, format.Corrupt(format.WebP, "truncated at byte %d of %d: the file ends before the image does",
			len(data), size)
	}
	f, err := firstFrame(data)
	if err != nil {
		return format.Config{}, err
	}
	still := data
	if f != nil {
		still = f.still
	}
	err = format.Guard(format.WebP, func() error {
		ic, err := webp.DecodeConfig(bytes.NewReader(still))
		c = fromStd(ic)
		return err
	})
	if f != nil && err == nil {
		if c.Width > f.canvas.X-f.at.X || c.Height > f.canvas.Y-f.at.Y {
			return c, format.Corrupt(format.WebP, "the first frame, %dx%d at %v, leaves the canvas of %dx%d", c.Width, c.Height,
				f.at, f.canvas.X, f.canvas.Y)
		}
		c.Width, c.Height = f.canvas.X, f.canvas.Y
	}
	c.Orientation, c.Transparent = webpOrientation(data), webpTransparent(data)
	return c, err
}

// webpTransparent reports whether a WebP can have transparent pixels. Of a lossless image its own
// header counts more than VP8X, as in libwebp; of a lossy image or an animation VP8X counts.
func webpTransparent(data []byte) (found bool) {
	const (
		extendedAlpha = 1 << 4
		losslessAlpha = 1 << 4 // of the last byte: above it are 3 bits of the version
		signature     = 0x2f
	)
	chunks(data, func(id string, p []byte) bool {
		switch {
		case id == "VP8X" && len(p) > 0:
			found = p[0]&extendedAlpha != 0
		case id == "VP8L" && len(p) >= 5 && p[0] == signature:
			found = p[4]&losslessAlpha != 0
		}
		return !slices.Contains([]string{"ANMF", "VP8 ", "VP8L"}, id)
	})
	return found
}

// fromStd converts the properties that a decoder of Go's library found.
func fromStd(ic image.Config) format.Config {
	c := format.Config{Width: ic.Width, Height: ic.Height, Model: "rgba", Channels: 4, Bits: 8}
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
