package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// corruptFiles returns files that a decoder must refuse, each named for what is wrong.
func corruptFiles() ([]file, error) {
	good, err := goodFiles()
	if err != nil {
		return nil, err
	}
	j, p := good["jpg"], good["png"]
	scan := bytes.Index(j, []byte{0xFF, 0xDA})
	middle := scan + (len(j)-scan)/2
	files := []file{
		{"zero.jpg", nil},
		{"zeros.jpg", make([]byte, 4096)},
		{"text.jpg", []byte("This is not an image, whatever its name says.\n")},
		{"page.jpg", []byte("<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n")},
		{"pointer.jpg", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")},
		{"noise.jpg", noise(512)},
		{"photo-avif.jpg", []byte("\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miafMA1B")},
		{"truncated.jpg", j[:middle]},
		{"truncated-90.jpg", j[:scan+(len(j)-scan)*9/10]},
		{"header-only.jpg", j[:scan]},
		{"no-eoi.jpg", j[:len(j)-2]},
		{"early-eoi.jpg", join(j[:middle], []byte{0xFF, 0xD9})},
		{"reserved-marker.jpg", join(j[:middle], []byte{0xFF, 0x5A}, j[middle:])},
		{"bomb.jpg", withJPEGSize(j, 20000, 20000)},
		{"zero-height.jpg", withJPEGSize(j, 64, 0)},
		{"truncated.png", p[:len(p)*2/3]},
		{"bad-crc.png", flip(p, len(p)/2)},
		{"bomb.png", pngHeader(20000, 20000)},
		{"absurd.png", pngHeader(1<<31-1, 1<<31-1)},
		{"zero-width.png", pngHeader(0, 64)},
		{"truncated.gif", good["gif"][:len(good["gif"])/2]},
		{"truncated.bmp", good["bmp"][:len(good["bmp"])/2]},
		{"truncated.tiff", good["tiff"][:len(good["tiff"])/2]},
		{"truncated.webp", []byte("RIFF\x40\x00\x00\x00WEBPVP8 \x30\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x10\x00\x10\x00")},
	}
	for i := range files {
		files[i].path = "corrupt/" + files[i].path
	}
	return files, nil
}

// goodFiles returns one picture in every format, by extension.
func goodFiles() (map[string][]byte, error) {
	m := drawPicture(rand.New(rand.NewPCG(7, 7)), circle)
	encoders := map[string]func(*bytes.Buffer) error{
		"jpg":  func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) },
		"png":  func(b *bytes.Buffer) error { return png.Encode(b, m) },
		"gif":  func(b *bytes.Buffer) error { return gif.Encode(b, m, nil) },
		"bmp":  func(b *bytes.Buffer) error { return bmp.Encode(b, m) },
		"tiff": func(b *bytes.Buffer) error { return tiff.Encode(b, m, nil) },
	}
	good := map[string][]byte{}
	for ext, encode := range encoders {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			return nil, err
		}
		good[ext] = b.Bytes()
	}
	return good, nil
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x55
	return b
}

func noise(n int) []byte {
	rng := rand.New(rand.NewPCG(11, 11))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.UintN(256))
	}
	return b
}

// withJPEGSize changes the size that the frame header claims.
func withJPEGSize(j []byte, w, h uint16) []byte {
	j = bytes.Clone(j)
	sof := bytes.Index(j, []byte{0xFF, 0xC0})
	binary.BigEndian.PutUint16(j[sof+5:], h)
	binary.BigEndian.PutUint16(j[sof+7:], w)
	return j
}

// pngHeader returns a gray PNG of that size whose pixels are missing.
func pngHeader(w, h uint32) []byte {
	ihdr := binary.BigEndian.AppendUint32(nil, w)
	ihdr = binary.BigEndian.AppendUint32(ihdr, h)
	ihdr = append(ihdr, 8, 0, 0, 0, 0)
	empty := []byte{0x78, 0x9c, 0x03, 0, 0, 0, 0, 1} // zlib stream of nothing
	return join([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", ihdr), chunk("IDAT", empty), chunk("IEND", nil))
}

func chunk(name string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, name...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}
