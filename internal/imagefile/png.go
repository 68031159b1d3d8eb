package imagefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

// models has the color types of PNG (PNG 11.2.2).
var models = map[byte]struct {
	name     string
	channels int
}{0: {"gray", 1}, 2: {"rgb", 3}, 3: {"palette", 1}, 4: {"graya", 2}, 6: {"rgba", 4}}

// pngConfig reads the header of a PNG: IHDR (PNG 11.2.2), and the orientation in eXIf.
func pngConfig(data []byte) (format.Config, error) {
	const header = 8 + 8 + 13 + 4
	if len(data) < header {
		return format.Config{}, format.Corrupt(format.PNG, "truncated at byte %d: the file ends in the header", len(data))
	}
	if string(data[12:16]) != "IHDR" {
		return format.Config{}, format.Corrupt(format.PNG, "the first chunk is not IHDR")
	}
	m, ok := models[data[25]]
	if !ok {
		return format.Config{}, format.Corrupt(format.PNG, "color type %d does not exist", data[25])
	}
	w, h := binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:])
	const limit = 1<<31 - 1
	if w > limit || h > limit {
		return format.Config{}, format.Corrupt(format.PNG, "the header says %dx%d pixels", w, h)
	}
	return format.Config{
		Width: int(w), Height: int(h), Model: m.name, Channels: m.channels, Bits: int(data[24]),
		Orientation: pngOrientation(data[header:]), Transparent: pngTransparent(m.name, data[header:]),
	}, nil
}

// pngOrientation returns the orientation in the eXIf chunk, which may come after the pixels; 1
// without the chunk.
func pngOrientation(chunks []byte) int {
	o := 1
	pngEach(chunks, func(id string, payload []byte) bool {
		if id == "eXIf" {
			o = format.Orientation(payload)
		}
		return id != "eXIf"
	})
	return o
}

// pngDecode decodes a PNG. Deflate expands data by at most a factor of 1032, so a file that is too
// small for the size in its header is refused before memory is allocated for its pixels.
func pngDecode(c format.Config, data []byte) (image.Image, error) {
	const most = 1032
	if row := 1 + (c.Width*c.Channels*c.Bits+7)/8; row > most*len(data)/c.Height {
		return nil, format.Corrupt(format.PNG, "truncated, or corrupt in its header: %d bytes cannot hold %dx%d pixels",
			len(data), c.Width, c.Height)
	}
	return png.Decode(bytes.NewReader(data))
}

// pngTransparent reports whether the image can have transparent pixels: by its color type, or by a
// tRNS chunk before the pixels (PNG 11.3.2.1). chunks are the chunks after IHDR.
func pngTransparent(model string, chunks []byte) bool {
	found := model == "graya" || model == "rgba"
	pngEach(chunks, func(id string, _ []byte) bool {
		found = found || id == "tRNS"
		return !found && id != "IDAT"
	})
	return found
}

// pngEach calls f with each chunk until f returns false, the file ends, or a chunk is cut off.
func pngEach(chunks []byte, f func(id string, payload []byte) bool) {
	for len(chunks) >= 12 {
		n := uint64(binary.BigEndian.Uint32(chunks))
		id := string(chunks[4:8])
		if n > uint64(len(chunks)-12) || !f(id, chunks[8:8+n]) {
			return
		}
		chunks = chunks[12+n:]
	}
}

// pngSamples returns the samples of a PNG with 16 bits, little endian, without alpha. image/png
// returns big-endian samples.
func pngSamples(c format.Config, data []byte) (m pixel.Raster, err error) {
	img, err := pngDecode(c, data)
	if err != nil {
		return m, err
	}
	m = pixel.Raster{W: c.Width, H: c.Height, C: 3, DType: tensor.Uint16}
	if c.Model == "gray" || c.Model == "graya" {
		m.C = 1
	}
	var pix []byte
	step := 8
	switch img := img.(type) {
	case *image.Gray16:
		pix, step = img.Pix, 2
	case *image.RGBA64:
		pix = img.Pix
	case *image.NRGBA64:
		pix = img.Pix
	default:
		return m, fmt.Errorf("pixels of type %T", img)
	}
	m.Pix = make([]byte, 0, m.W*m.H*m.C*2)
	for ; len(pix) > 0; pix = pix[step:] {
		for k := range m.C {
			m.Pix = append(m.Pix, pix[2*k+1], pix[2*k])
		}
	}
	return m, nil
}
