package imagefile

import (
	"encoding/binary"
	"image"
)

// webpChunks calls f with the chunks of a WebP file until f returns false.
func webpChunks(data []byte, f func(id string, payload []byte) bool) {
	webpEach(data[min(12, len(data)):], f)
}

// webpEach does so with the chunks in b.
func webpEach(b []byte, f func(id string, payload []byte) bool) {
	for len(b) >= 8 {
		n := uint64(binary.LittleEndian.Uint32(b[4:]))
		if n > uint64(len(b)-8) || !f(string(b[:4]), b[8:8+n]) {
			return
		}
		b = b[min(uint64(len(b)), 8+n+n&1):]
	}
}

func webpOrientation(data []byte) int {
	o := 1
	webpChunks(data, func(id string, p []byte) bool {
		if id == "EXIF" {
			if v := app1Orientation(p); v != 0 {
				o = v
			} else {
				o = exifOrientation(p)
			}
		}
		return true
	})
	return o
}

// webpToRGBX converts the planes of a lossy WebP as libwebp does: limited-range BT.601
// (dsp/yuv.h) with "fancy" chroma (dsp/upsampling.c). dst has 4 bytes a pixel, no gaps.
func webpToRGBX(dst []byte, m *image.YCbCr) {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	cw := (w + 1) / 2
	for y := range h {
		near := y / 2
		far := near + 1 - 2*(1-y&1) // the row above for even y, the one below for odd
		far = max(0, min(far, (h+1)/2-1))
		c := webpChroma{
			u: m.Cb[near*m.CStride:][:cw], v: m.Cr[near*m.CStride:][:cw],
			fu: m.Cb[far*m.CStride:][:cw], fv: m.Cr[far*m.CStride:][:cw],
		}
		c.row(dst[y*w*4:][:w*4], m.Y[y*m.YStride:][:w])
	}
}

// webpAlpha puts m's alpha into the fourth bytes of dst.
func webpAlpha(dst []byte, m *image.NYCbCrA) {
	w := m.Rect.Dx()
	for y := range m.Rect.Dy() {
		row := dst[y*w*4:][:w*4]
		for x, a := range m.A[y*m.AStride:][:w] {
			row[4*x+3] = a
		}
	}
}

// webpChroma holds the chroma rows of one output row: the one that covers it and its
// neighbour on the other side.
type webpChroma struct{ u, v, fu, fv []byte }

func (c webpChroma) row(dst, luma []byte) {
	last := len(luma) - 1
	for x := range luma {
		near := x / 2
		far := near + 1 - 2*(1-x&1)
		if x == 0 || x == last && x&1 == 1 {
			far = -1 // the border: no column on the other side
		}
		webpPixel(dst[4*x:4*x+4], int(luma[x]), webpBlend(c.u, c.fu, near, far), webpBlend(c.v, c.fv, near, far))
	}
}

// webpBlend is libwebp's 9:3:3:1 blend of four chroma samples, with its two roundings;
// without a far column, 3:1.
func webpBlend(nearRow, farRow []byte, near, far int) int {
	a, b := int(nearRow[near]), int(farRow[near])
	if far < 0 {
		return (3*a + b + 2) >> 2
	}
	c, d := int(nearRow[far]), int(farRow[far])
	return ((a+b+c+d+8+2*(b+c))>>3 + a) >> 1
}

func webpPixel(dst []byte, y, u, v int) {
	mul := func(v, c int) int { return v * c >> 8 }
	clip := func(v int) byte { return byte(max(0, min(v>>6, 255))) }
	l := mul(y, 19077)
	dst[0] = clip(l + mul(v, 26149) - 14234)
	dst[1] = clip(l - mul(u, 6419) - mul(v, 13320) + 8708)
	dst[2] = clip(l + mul(u, 33050) - 17685)
	dst[3] = 255
}
