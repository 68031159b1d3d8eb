package imagefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/penstock/penstock/internal/imagefile/format"
)

// SniffLen is the number of bytes at the start of a file that Sniff looks at.
const SniffLen = 16

// signature is the start of every file of a format.
type signature struct {
	magic  string // '?' stands for any byte
	format format.Format
}

// signatures lists the formats that are read. Bitmaps are added by init, Netpbm has a function of
// its own.
var signatures = []signature{
	{"\xff\xd8\xff", format.JPEG},
	{"\x89PNG\r\n\x1a\n", format.PNG},
	{"GIF87a", format.GIF},
	{"GIF89a", format.GIF},
	{"RIFF????WEBP", format.WebP},
	{"II*\x00", format.TIFF},
	{"MM\x00*", format.TIFF},
	{"II+\x00\x08\x00", format.TIFF}, // BigTIFF
	{"MM\x00+\x00\x08", format.TIFF},
}

func init() {
	for _, size := range bmpHeaderSizes { // the letters BM alone may begin a text, so the size of the second header counts, too
		signatures = append(signatures, signature{"BM????????????" + string([]byte{byte(size), 0}), format.BMP})
	}
}

// strangers lists formats that occur in image folders and are not read, by the start of their
// files, with advice for the user. They are only named in errors.
var strangers = []struct{ magic, name string }{
	{"????ftyp", "a video or an ISO media file"},
	{"\xff\x0a", "JPEG XL; convert it to JPEG or PNG"},
	{"\x00\x00\x00\x0cJXL ", "JPEG XL; convert it to JPEG or PNG"},
	{"\x00\x00\x00\x0cjP  ", "JPEG 2000; convert it to JPEG or PNG"},
	{"8BPS", "a Photoshop document; convert it to JPEG or PNG"},
	{"\x00\x00\x01\x00", "a Windows icon; convert it to PNG"},
	{"%PDF", "PDF"},
	{"<!DOCTYPE html", "an HTML page"},
	{"<!doctype html", "an HTML page"},
	{"<html", "an HTML page"},
	{"PK\x03\x04", "a zip archive; unpack it first"},
	{"\x1f\x8b", "gzip; unpack it first"},
	{"\x89HDF\r\n\x1a\n", "HDF5"},
	{"\x93NUMPY", "a NumPy array"},
	{"version https://git-lfs", "a Git LFS pointer; run git lfs pull"},
}

// Sniff returns the format that the first bytes of a file announce, "" if Open does not read it. It
// needs SniffLen bytes, or the whole file if that is shorter. The file's name plays no part, since
// names of downloaded images are often wrong.
func Sniff(head []byte) format.Format {
	for _, s := range signatures {
		if hasMagic(head, s.magic) {
			return s.format
		}
	}
	if pnmIs(head) {
		return format.PNM
	}
	return ""
}

// hasMagic reports whether a file begins with magic, in which '?' stands for any byte.
func hasMagic(head []byte, magic string) bool {
	if len(head) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != '?' && magic[i] != head[i] {
			return false
		}
	}
	return true
}

// notImage is the error of a file without a known signature; it says what the file seems to be.
func notImage(data []byte) error {
	return &format.Error{Kind: format.ErrNotImage, Msg: "not an image: " + describe(data)}
}

// describe says what a file that is no image looks like. Most such files are downloads that failed:
// an HTML page, an empty file, or zeros that were never overwritten.
func describe(data []byte) string {
	if len(data) == 0 {
		return "the file is empty"
	}
	if what := describeMedia(data); what != "" {
		return what
	}
	for _, s := range strangers {
		if hasMagic(data, s.magic) {
			return "looks like " + s.name
		}
	}
	if len(bytes.Trim(data, "\x00")) == 0 {
		return fmt.Sprintf("all %d bytes are zero", len(data))
	}
	if isText(data[:min(len(data), 512)]) {
		return "looks like text"
	}
	return "no known format begins like it"
}

// describeMedia recognizes AVIF and HEIC by the brands in the first box of an ISO media file
// (ISO/IEC 23008-12): phones write HEIC under names that end in .jpg. It returns "" for other
// files.
func describeMedia(data []byte) string {
	if !hasMagic(data, "????ftyp") {
		return ""
	}
	brands := data[8:min(len(data), 512, max(16, int(binary.BigEndian.Uint32(data))))]
	for ; len(brands) >= 4; brands = brands[4:] {
		switch string(brands[:4]) {
		case "avif", "avis":
			return "looks like AVIF; convert all such files to PNG: magick mogrify -format png *.avif"
		case "heic", "heix", "heim", "heis", "hevc", "hevx":
			return "looks like HEIC; convert all such files to JPEG: magick mogrify -quality 95 -format jpg *.heic"
		}
	}
	return ""
}

// isText reports whether bytes are UTF-8 without control characters. The last character may be cut
// off.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && len(b) >= utf8.UTFMax || r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		b = b[n:]
	}
	return true
}
