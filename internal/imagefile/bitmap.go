package imagefile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/pixel"
)

// Bitmap is an image with one bit a pixel. Each row begins with a byte that is 0, and then has
// eight pixels in a byte, the first one in the highest bit. This is the form of the rows of a PNG
// with filter 0 (PNG 9.2), so that Append writes them without moving a bit.
type Bitmap struct {
	W, H int
	Rows []byte
}

// newBitmap returns a Bitmap of zeros, in the given memory if that is large enough.
func newBitmap(memory []byte, w, h int) Bitmap {
	m := Bitmap{W: w, H: h, Rows: pixel.Grow(memory, (1+(w+7)/8)*h)}
	clear(m.Rows)
	return m
}

// Stride returns the number of bytes from a row to the next, with the byte before the pixels.
func (m Bitmap) Stride() int { return 1 + (m.W+7)/8 }

// Set sets a pixel to 1.
func (m Bitmap) Set(x, y int) { m.Rows[y*m.Stride()+1+x/8] |= 0x80 >> (x & 7) }

// spread has, for each value of a byte, its bits as 8 bytes of 0 or 1, the highest bit first.
var spread = func() (t [256][8]byte) {
	for v := range t {
		for i := range t[v] {
			t[v][i] = byte(v >> (7 - i) & 1)
		}
	}
	return t
}()

// Bytes writes rows [y0, y1) to dst, one byte a pixel.
func (m Bitmap) Bytes(dst []byte, y0, y1 int) {
	stride := m.Stride()
	for y := y0; y < y1; y++ {
		row, src := dst[:m.W], m.Rows[y*stride+1:(y+1)*stride]
		dst = dst[m.W:]
		for len(row) >= 8 {
			*(*[8]byte)(row) = spread[src[0]]
			row, src = row[8:], src[1:]
		}
		if len(row) > 0 {
			copy(row, spread[src[0]][:])
		}
	}
}

// Pack sets the pixels of row y that are not 0 in src.
func (m Bitmap) Pack(y int, src []byte) {
	row := m.Rows[y*m.Stride()+1:]
	for i, v := range src {
		if v != 0 {
			row[i/8] |= 0x80 >> (i & 7)
		}
	}
}

const pngSignature = "\x89PNG\r\n\x1a\n"

// Append appends the image as a PNG file with a palette of black and white.
func (m Bitmap) Append(dst []byte) ([]byte, error) {
	var header [13]byte
	binary.BigEndian.PutUint32(header[:], uint32(m.W))
	binary.BigEndian.PutUint32(header[4:], uint32(m.H))
	header[8], header[9] = 1, 3 // a bit of a palette
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err == nil {
		_, err = z.Write(m.Rows)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return dst, err
	}
	dst = appendChunk(append(dst, pngSignature...), "IHDR", header[:])
	dst = appendChunk(dst, "PLTE", []byte{0, 0, 0, 255, 255, 255})
	return appendChunk(appendChunk(dst, "IDAT", packed.Bytes()), "IEND", nil), nil
}

// appendChunk appends a PNG chunk: length, type, payload, and CRC-32 of type and payload (PNG 5.3).
func appendChunk(dst []byte, id string, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	at := len(dst)
	dst = append(append(dst, id...), payload...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
}

// pngBits decodes a PNG with one bit a pixel into the given memory if that is large enough. It
// returns false for everything that pngDecode has to do: other files, interlaced files, and corrupt
// ones, for which pngDecode returns the better error.
func pngBits(c format.Config, data, memory []byte) (m Bitmap, ok bool) {
	const interlace = 8 + 8 + 12
	m = Bitmap{W: c.Width, H: c.Height}
	if c.Bits != 1 || c.Channels != 1 || len(data) <= interlace || data[interlace] != 0 || data[26]|data[27] != 0 {
		return m, false
	}
	if carry, size := bits.Mul64(uint64(m.Stride()), uint64(m.H)); carry != 0 || size > 1032*uint64(len(data)) {
		return m, false
	}
	pixels, ok := pixelsOf(data[len(pngSignature):])
	if !ok {
		return m, false
	}
	z, err := zlib.NewReader(pixels)
	if err != nil {
		return m, false
	}
	m.Rows = pixel.Grow(memory, m.Stride()*m.H)
	if _, err := io.ReadFull(z, m.Rows); err != nil {
		return m, false
	}
	if n, err := z.Read(make([]byte, 1)); n > 0 || err != io.EOF { // at its end, the reader compares the checksum of the stream
		return m, false
	}
	return m, m.unfilter()
}

// pixelsOf returns the joined content of the IDAT chunks, or false if a chunk is wrong in any way.
// Lengths and checksums of all chunks up to IEND are checked.
func pixelsOf(chunks []byte) (io.Reader, bool) {
	var parts []io.Reader
	for len(chunks) >= 12 {
		n := uint64(binary.BigEndian.Uint32(chunks))
		if n > uint64(len(chunks)-12) {
			return nil, false
		}
		if crc32.ChecksumIEEE(chunks[4:8+n]) != binary.BigEndian.Uint32(chunks[8+n:]) {
			return nil, false
		}
		switch id := string(chunks[4:8]); {
		case id == "IDAT":
			parts = append(parts, bytes.NewReader(chunks[8:8+n]))
		case id == "IEND":
			return io.MultiReader(parts...), len(parts) > 0
		case id != "IHDR" && id != "PLTE" && id[0]&0x20 == 0: // a critical chunk that is not known here (PNG 5.4)
			return nil, false
		}
		chunks = chunks[12+n:]
	}
	return nil, false
}

// unfilter undoes the filters of the rows in place (PNG 9.2): each byte was stored as its
// difference from bytes to the left and above. It returns false for a filter that does not exist.
// With less than a byte a pixel, "left" is the byte before.
func (m Bitmap) unfilter() bool {
	stride := m.Stride()
	above := make([]byte, stride)
	for y := range m.H {
		row := m.Rows[y*stride : (y+1)*stride]
		filter := row[0]
		row[0] = 0
		switch filter {
		case 0:
		case 1, 2, 3, 4:
			for i := 1; i < stride; i++ {
				left, corner := row[i-1], above[i-1] // 0 at the left edge, where row[0] and above[0] are 0
				switch filter {
				case 1:
					row[i] += left
				case 2:
					row[i] += above[i]
				case 3:
					row[i] += byte((int(left) + int(above[i])) / 2)
				default:
					row[i] += paeth(left, above[i], corner)
				}
			}
		default:
			return false
		}
		above = row
	}
	return true
}

// paeth returns whichever of three bytes is nearest to left + above - corner (PNG 9.4).
func paeth(left, above, corner byte) byte {
	a, b, c := int(left), int(above), int(corner)
	p := a + b - c
	pa, pb, pc := abs(p-a), abs(p-b), abs(p-c)
	switch {
	case pa <= pb && pa <= pc:
		return left
	case pb <= pc:
		return above
	}
	return corner
}

func abs(v int) int { return max(v, -v) }
