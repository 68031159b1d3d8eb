package tiff

import "bytes"

// ycbcrTables has the amounts that each sample of YCbCr adds to red, green and blue:
// libtiff's tables (tif_color.c, TIFFYCbCrToRGBInit).
type ycbcrTables struct {
	y, crR, cbB, crG, cbG [256]int32
}

// ycbcrTables computes the tables for the page's coefficients and reference levels (TIFF 6.0
// section 21), in the fixed-point arithmetic of libtiff, with which Pillow and tifffile decode.
func (p *Page) ycbcrTables() (t ycbcrTables) {
	luma := [3]float32{0.299, 0.587, 0.114}
	if e, ok := p.dir[tagYCbCrCoeffs]; ok && e.count >= 3 {
		for i := range luma {
			luma[i] = float32(p.file.number(e, i))
		}
	}
	ref := [6]float32{0, 255, 128, 255, 128, 255}
	if e, ok := p.dir[tagReferenceBW]; ok && e.count >= 6 {
		for i := range ref {
			ref[i] = float32(p.file.number(e, i))
		}
	}
	const half = 1 << 15
	fix := func(f float32) int32 { return int32(float64(clamp(f, 0, 2))*65536 + 0.5) }
	f1, f3 := 2-2*luma[0], 2-2*luma[2]
	d1, d2 := fix(f1), -fix(luma[0]*f1/luma[1])
	d3, d4 := fix(f3), -fix(luma[2]*f3/luma[1])
	value := func(c, black, white, code float32) int32 {
		span := white - black
		if span == 0 {
			span = 1
		}
		return int32(clamp((c-float32(int32(clamp(black, -1<<24, 1<<24))))*code/span, -128*32, 128*32))
	}
	for i := range 256 {
		x := float32(i - 128)
		cr, cb := value(x, ref[4]-128, ref[5]-128, 127), value(x, ref[2]-128, ref[3]-128, 127)
		t.crR[i], t.cbB[i] = (d1*cr+half)>>16, (d3*cb+half)>>16
		t.crG[i], t.cbG[i] = d2*cr, d4*cb+half
		t.y[i] = value(x+128, ref[0], ref[1], 255)
	}
	return t
}

// clamp limits f to [low, high]. NaN becomes low.
func clamp(f, low, high float32) float32 {
	if f > low {
		return min(f, high)
	}
	return low
}

// fillYCbCr converts a chunk of units: sub[0]*sub[1] samples of luma, and one of either chroma.
// Chroma is repeated and not interpolated, as in libtiff.
func (d *decoder) fillYCbCr(c *chunk) {
	p, out, buf := d.page, d.out, d.buf
	t := p.ycbcrTables()
	sx, sy := p.sub[0], p.sub[1]
	unit, across := sx*sy+2, (c.w+sx-1)/sx
	for y := range min(c.h, p.Height-c.y) {
		for x := range min(c.w, p.Width-c.x) {
			u := buf[(y/sy*across+x/sx)*unit:][:unit]
			l, cb, cr := t.y[u[y%sy*sx+x%sx]], u[unit-2], u[unit-1]
			o := out[((c.y+y)*p.Width+c.x+x)*3:]
			o[0] = byte(max(0, min(l+t.crR[cr], 255)))
			o[1] = byte(max(0, min(l+(t.cbG[cb]+t.crG[cr])>>16, 255)))
			o[2] = byte(max(0, min(l+t.cbB[cb], 255)))
		}
	}
}

// fillJPEG decodes a chunk that is a JPEG.
func (d *decoder) fillJPEG(c *chunk) error {
	p := d.page
	if d.codecs.JPEG == nil {
		return unsupported(rewrite, "its compression is JPEG")
	}
	n := p.samplesOf()
	if n != 1 && n != 3 {
		return unsupported(rewrite, "its compression is JPEG of %d channels", n)
	}
	pix, w, h, err := d.codecs.JPEG(p.jpegOf(c), p.grid.chunkW, p.grid.chunkH, n)
	if err != nil {
		return err
	}
	rows, columns := min(c.h, p.Height-c.y), min(c.w, p.Width-c.x)
	if w < columns || h < rows || len(pix) < w*h*n {
		return malformed("a strip or tile has %dx%d pixels instead of %dx%d", w, h, c.w, c.h)
	}
	for y := range rows {
		d.place(c, y, columns, pix[y*w*n:], n, 1)
	}
	return nil
}

// jpegOf returns a chunk as a complete JPEG file, with the tables that may be in the directory
// (TIFF Technical Note 2). Three channels that are not YCbCr get an Adobe marker that says so;
// otherwise a decoder would take them for YCbCr.
func (p *Page) jpegOf(c *chunk) []byte {
	start := []byte{0xff, 0xd8}
	stream := bytes.TrimPrefix(c.raw, start)
	var b []byte
	b = append(b, start...)
	if p.photometric != ycbcr {
		b = append(b, "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"...)
	}
	if tables := p.dir[tagJPEGTables].raw; len(tables) > 4 {
		b = append(b, bytes.TrimSuffix(bytes.TrimPrefix(tables, start), []byte{0xff, 0xd9})...)
	}
	return append(b, stream...)
}
