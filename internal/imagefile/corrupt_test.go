package imagefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const corruptDir = "../../testdata/corrupt"

// The error of each file of testdata/corrupt.
var corruptFiles = map[string]struct {
	kind error
	text string // part of the message
}{
	"zero.jpg":            {ErrNotImage, "not an image: the file is empty"},
	"zeros.jpg":           {ErrNotImage, "not an image: all 4096 bytes are zero"},
	"text.jpg":            {ErrNotImage, `not an image: looks like text`},
	"page.jpg":            {ErrNotImage, `not an image: looks like an HTML page`},
	"pointer.jpg":         {ErrNotImage, "Git LFS pointer"},
	"noise.jpg":           {ErrNotImage, "no known format begins like it"},
	"photo-avif.jpg":      {ErrNotImage, "looks like AVIF"},
	"truncated.jpg":       {ErrCorrupt, "jpeg: truncated at byte 989 of scan 1: the file ends before the image does"},
	"truncated-90.jpg":    {ErrCorrupt, "jpeg: truncated at byte 1320 of scan 1"},
	"header-only.jpg":     {ErrCorrupt, "jpeg: truncated at byte 575: the file ends before the first scan"},
	"no-eoi.jpg":          {ErrCorrupt, "jpeg: truncated at byte 1401 of scan 1"},
	"early-eoi.jpg":       {ErrCorrupt, "jpeg: "},
	"reserved-marker.jpg": {ErrCorrupt, "jpeg: reserved marker ff5a at byte 989"},
	"bomb.jpg":            {ErrTooLarge, "image size 20000x20000 (400000000 pixels) exceeds limit of 178956970 pixels"},
	"zero-height.jpg":     {ErrCorrupt, "the header says 64x0 pixels"},
	"truncated.png":       {ErrCorrupt, "png: truncated"},
	"bad-crc.png":         {ErrCorrupt, "png: "},
	"bomb.png":            {ErrTooLarge, "raise the limit"},
	"absurd.png":          {ErrTooLarge, "image size 2147483647x2147483647"},
	"zero-width.png":      {ErrCorrupt, "the header says 0x64 pixels"},
	"truncated.gif":       {ErrCorrupt, "gif: truncated"},
	"truncated.bmp":       {ErrCorrupt, "bmp: truncated"},
	"truncated.tiff":      {ErrCorrupt, "tiff: "},
	"truncated.webp":      {ErrCorrupt, "webp: "},
}

func TestCorruptFilesAreRefused(t *testing.T) {
	entries, err := os.ReadDir(corruptDir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(corruptFiles) {
		t.Errorf("%s holds %d files, the table %d", corruptDir, len(entries), len(corruptFiles))
	}
	d := New(Options{})
	for name, want := range corruptFiles {
		data, err := os.ReadFile(filepath.Join(corruptDir, name))
		if err != nil {
			t.Fatal(err)
		}
		_, err = openAll(t, d, data)
		if !errors.Is(err, want.kind) {
			t.Errorf("%s: %v, want kind %q", name, err, want.kind)
		} else if !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %q, want %q in it", name, err, want.text)
		}
	}
}

func TestMaxPixels(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("../../testdata/raw/circle/000.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	n := c.Width * c.Height
	for limit, ok := range map[int]bool{0: true, n: true, n - 1: false, 1: false} {
		d := New(Options{MaxPixels: limit})
		if _, err := d.Open(data); (err == nil) != ok || err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("limit %d for %d pixels: %v", limit, n, err)
		}
	}
}
