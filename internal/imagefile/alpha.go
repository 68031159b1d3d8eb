package imagefile

import (
	"encoding/binary"
	"slices"
)

// Alpha says what becomes of transparency.
type Alpha uint8

// The values of Alpha.
const (
	DropAlpha Alpha = iota // colors as the file has them, however transparent
	OnWhite                // as they look on white
	OnBlack                // as they look on black
)

// background returns the value of all channels behind the image.
func (a Alpha) background() int {
	if a == OnWhite {
		return 255
	}
	return 0
}

// over puts pixels of four bytes, the last of which is alpha, on a background: what
// img2dataset has for white, alpha/255*color + background*(1-alpha/255), to the nearest.
// No sum lies halfway between two integers, as 255 is odd.
func over(pix []byte, background int) {
	for i := 0; i+4 <= len(pix); i += 4 {
		p := pix[i : i+4 : i+4]
		a := int(p[3])
		if a == 255 {
			continue
		}
		behind := (255-a)*background + 127
		p[0] = byte((int(p[0])*a + behind) / 255)
		p[1] = byte((int(p[1])*a + behind) / 255)
		p[2] = byte((int(p[2])*a + behind) / 255)
		p[3] = 255
	}
}

// The functions here say of a file's header whether it declares transparency, as Pillow
// takes it: by a mode with alpha, or a "transparency" in its info. The pixels of such a file
// may all be opaque.

// pngTransparent reports color types with alpha, and a tRNS chunk before the pixels (PNG
// 11.3.2.1). chunks are those behind IHDR.
func pngTransparent(model string, chunks []byte) bool {
	found := model == "graya" || model == "rgba"
	pngEach(chunks, func(id string, _ []byte) bool {
		found = found || id == "tRNS"
		return !found && id != "IDAT"
	})
	return found
}

// pngEach calls f with the chunks until f returns false.
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

// webpTransparent goes by the header of a lossless image, which counts more than VP8X, as in
// libwebp, and by VP8X for lossy images and animations.
func webpTransparent(data []byte) (found bool) {
	const (
		extendedAlpha = 1 << 4
		losslessAlpha = 1 << 4 // of the last byte: above it are 3 bits of the version
		signature     = 0x2f
	)
	webpChunks(data, func(id string, p []byte) bool {
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
