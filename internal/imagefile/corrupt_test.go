package imagefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/testkit/require"
)

const corruptDir = "../../testdata/corrupt"

// The error of each file of testdata/corrupt.
var corruptFiles = map[string]struct {
	kind error
	text string // part of the message
}{
	"zero.jpg":            {format.ErrNotImage, "not an image: the file is empty"},
	"zeros.jpg":           {format.ErrNotImage, "not an image: all 4096 bytes are zero"},
	"text.jpg":            {format.ErrNotImage, `not an image: looks like text`},
	"page.jpg":            {format.ErrNotImage, `not an image: looks like an HTML page`},
	"pointer.jpg":         {format.ErrNotImage, "Git LFS pointer"},
	"noise.jpg":           {format.ErrNotImage, "no known format begins like it"},
	"photo-avif.jpg":      {format.ErrNotImage, "looks like AVIF"},
	"truncated.jpg":       {format.ErrCorrupt, "jpeg: truncated at byte 989 of scan 1: the file ends before the image does"},
	"truncated-90.jpg":    {format.ErrCorrupt, "jpeg: truncated at byte 1320 of scan 1"},
	"header-only.jpg":     {format.ErrCorrupt, "jpeg: truncated at byte 575: the file ends before the first scan"},
	"no-eoi.jpg":          {format.ErrCorrupt, "jpeg: truncated at byte 1401 of scan 1"},
	"early-eoi.jpg":       {format.ErrCorrupt, "jpeg: "},
	"reserved-marker.jpg": {format.ErrCorrupt, "jpeg: reserved marker ff5a at byte 989"},
	"bomb.jpg":            {format.ErrTooLarge, "image size 20000x20000 (400000000 pixels) exceeds limit of 178956970 pixels"},
	"zero-height.jpg":     {format.ErrCorrupt, "the header says 64x0 pixels"},
	"truncated.png":       {format.ErrCorrupt, "png: truncated"},
	"bad-crc.png":         {format.ErrCorrupt, "png: "},
	"bomb.png":            {format.ErrTooLarge, "raise the limit"},
	"absurd.png":          {format.ErrTooLarge, "image size 2147483647x2147483647"},
	"zero-width.png":      {format.ErrCorrupt, "the header says 0x64 pixels"},
	"truncated.gif":       {format.ErrCorrupt, "gif: truncated"},
	"truncated.bmp":       {format.ErrCorrupt, "bmp: truncated"},
	"truncated.tiff":      {format.ErrCorrupt, "tiff: "},
	"truncated.webp":      {format.ErrCorrupt, "webp: "},
}

func TestCorruptFilesAreRefused(t *testing.T) {
	entries, err := os.ReadDir(corruptDir)
	require.NoError(t, err)
	if len(entries) != len(corruptFiles) {
		t.Errorf("%s holds %d files, the table %d", corruptDir, len(entries), len(corruptFiles))
	}
	d := New(Options{})
	for name, want := range corruptFiles {
		data, err := os.ReadFile(filepath.Join(corruptDir, name))
		require.NoError(t, err)
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
	require.NoError(t, err)
	c, err := ReadConfig(data)
	require.NoError(t, err)
	n := c.Width * c.Height
	for limit, ok := range map[int]bool{0: true, n: true, n - 1: false, 1: false} {
		d := New(Options{MaxPixels: limit})
		if _, err := d.Open(data); (err == nil) != ok || err != nil && !errors.Is(err, format.ErrTooLarge) {
			t.Errorf("limit %d for %d pixels: %v", limit, n, err)
		}
	}
}
