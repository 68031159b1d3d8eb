package imagefile

import (
	"encoding/binary"
	"slices"
)

// The functions here say of a file's header whether it declares transparency, as Pillow
// takes it: by a mode with alpha, or a "transparency" in its info. The pixels of such a file
// may all be opaque.

// pngTransparent reports colour types with alpha, and a tRNS chunk before the pixels (PNG
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
