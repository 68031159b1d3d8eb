package imagefile

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
)

var pngModels = map[byte]struct {
	name     string
	channels int
}{0: {"gray", 1}, 2: {"rgb", 3}, 3: {"palette", 1}, 4: {"graya", 2}, 6: {"rgba", 4}}

// pngConfig reads IHDR (PNG 11.2.2), and eXIf.
func pngConfig(data []byte) (Config, error) {
	const header = 8 + 8 + 13 + 4
	if len(data) < header {
		return Config{}, corrupt(PNG, "truncated at byte %d: the file ends in the header", len(data))
	}
	if string(data[12:16]) != "IHDR" {
		return Config{}, corrupt(PNG, "the first chunk is not IHDR")
	}
	m, ok := pngModels[data[25]]
	if !ok {
		return Config{}, corrupt(PNG, "color type %d does not exist", data[25])
	}
	w, h := binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:])
	const limit = 1<<31 - 1
	if w > limit || h > limit {
		return Config{}, corrupt(PNG, "the header says %dx%d pixels", w, h)
	}
	return Config{
		Width: int(w), Height: int(h), Model: m.name, Channels: m.channels, Bits: int(data[24]),
		Orientation: pngOrientation(data[header:]), Transparent: pngTransparent(m.name, data[header:]),
	}, nil
}

// pngOrientation looks for an eXIf chunk, which may stand behind the pixels.
func pngOrientation(chunks []byte) int {
	o := 1
	pngEach(chunks, func(id string, payload []byte) bool {
		if id == "eXIf" {
			o = exifOrientation(payload)
		}
		return id != "eXIf"
	})
	return o
}

// decodePNG refuses a file that is too small for what its header says, before memory is taken
// for that: deflate makes at most 1032 bytes of one.
func decodePNG(c Config, data []byte) (image.Image, error) {
	const most = 1032
	if row := 1 + (c.Width*c.Channels*c.Bits+7)/8; row > most*len(data)/c.Height {
		return nil, corrupt(PNG, "truncated, or corrupt in its header: %d bytes cannot hold %dx%d pixels", len(data), c.Width, c.Height)
	}
	return png.Decode(bytes.NewReader(data))
}
