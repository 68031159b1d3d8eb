package preprocess

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// Flags about images have no effect without images, and a note says so.
func TestUnusedFlags(t *testing.T) {
	rows := rawtest.Rows(t, 3)
	for flags, want := range map[string]string{
		"--resize 8 --dtype float16":       "--resize, --dtype: the source has no images that this could be done to; it has number, label, which the transforms",
		"--color gray --layout hwc":        "--color, --layout: the source has no images",
		"--crop 3 --normalize 0.5/0.5":     "--crop, --normalize: the source has no images",
		"--keep-encoded":                   "--keep-encoded: the source has no images",
		"--alpha white --cmyk refused":     "--alpha, --cmyk: the source has no images",
		"--exif-orientation applied":       "--exif-orientation: the source has no images",
		"--sixteen-bit refused":            "--sixteen-bit: the source has no images",
		"--alpha dropped --cmyk converted": "",
	} {
		c, err := parseFlags(t, rows+" "+filepath.Join(t.TempDir(), "ds")+" "+flags)
		require.NoError(t, err)
		if want == "" {
			mustRun(t, c)
		} else if got := runError(t, c); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", flags, got, want)
		}
	}
	c := plain(t, rawtest.Folder(t, 4))
	c.Images.Resize, c.Images.Crop = []int{24}, []int{16}
	mustRun(t, c)
	again := plain(t, c.Dest)
	again.Images.Rules.Alpha = 1
	if got := runError(t, again); !strings.Contains(got, "--alpha: the source has no images that this") {
		t.Errorf("pixels: %s", got)
	}
}
