package prepare

import (
	"bytes"
	"image"
	"image/jpeg"
	"math"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/transforms"
)

// filesOf returns the files that a dataset has in its first field.
func filesOf(t *testing.T, path string) (files [][]byte) {
	t.Helper()
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	for i := range ds.Len() {
		var ends [2]int64
		v, err := ds.SliceRagged("images", i, i+1, ends[:])
		require.NoError(t, err)
		files = append(files, bytes.Clone(v.Bytes()))
	}
	return files
}

// Large files become JPEGs of the size asked for, with nearly the pixels of the Resize; others
// stay byte for byte.
func TestShrink(t *testing.T) {
	gradient := image.NewRGBA(image.Rect(0, 0, 200, 120))
	for i := range gradient.Pix {
		x, y := i/4%200, i/800
		gradient.Pix[i] = []byte{byte(x), byte(y), byte(x/2 + y/2), 255}[i%4]
	}
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, gradient, &jpeg.Options{Quality: 100}))
	files := []struct {
		name         string
		data         []byte
		kept, larger bool // by default, and with LargerThan 100
		w, h         int  // if not kept
	}{
		{"a.jpg", b.Bytes(), false, true, 83, 50},
		{"b.png", rawtest.Picture(t, "b.png", 60, 180, 2), false, false, 50, 150},
		{"c.png", rawtest.Picture(t, "c.png", 50, 300, 3), true, false, 0, 0},
		{"d.jpg", rawtest.Picture(t, "d.jpg", 40, 30, 4), true, false, 0, 0},
		{"e.jpg", oriented(b.Bytes()), false, true, 83, 50},
	}
	source := filepath.Join(t.TempDir(), "photos")
	for _, f := range files {
		rawtest.Put(t, source, f.name, f.data)
	}
	size := func(c *Config) {
		c.Images.Crop, c.Images.KeepEncoded, c.Images.Resize = nil, true, []int{50}
	}
	c := config(t, source)
	size(&c)
	mustRun(t, c)
	for i, got := range filesOf(t, c.Dest) {
		f := files[i]
		if f.kept {
			if !bytes.Equal(got, f.data) {
				t.Errorf("%s is not kept as it is", f.name)
			}
			continue
		}
		before, err := imagefile.ReadConfig(f.data)
		require.NoError(t, err)
		after, err := imagefile.ReadConfig(got)
		if err != nil || after.Format != imagefile.JPEG || after.Width != f.w || after.Height != f.h || after.Orientation != before.Orientation {
			t.Errorf("%s became %+v, %v; it was %+v", f.name, after, err, before)
		}
		if f.name != "b.png" { // whose pattern no JPEG keeps
			if e := distance(t, got, f.data, 50); e > 2 {
				t.Errorf("%s: pixels are %.2f from those of the Resize", f.name, e)
			}
		}
	}

	c = config(t, source)
	size(&c)
	c.Images.LargerThan, c.Images.Quality = 100, 30
	mustRun(t, c)
	for i, got := range filesOf(t, c.Dest) {
		if f := files[i]; bytes.Equal(got, f.data) == f.larger {
			t.Errorf("LargerThan: %s has %d bytes, and had %d", f.name, len(got), len(f.data))
		}
	}
}

// distance returns how far the pixels of a file are from those that Resize computes from another, as the
// root mean square.
func distance(t *testing.T, file, original []byte, side int) float64 {
	t.Helper()
	pixels := func(data []byte, ts ...transforms.Transform) []byte {
		d := imagefile.New(imagefile.Options{})
		src, err := d.Open(data)
		require.NoError(t, err)
		p, err := transforms.Compose(ts...)
		require.NoError(t, err)
		out, err := p.Output(transforms.InfoOf(src))
		require.NoError(t, err)
		dst := make([]byte, out.Bytes())
		require.NoError(t, p.Runner().Do(dst, src))
		return dst
	}
	a, b := pixels(file), pixels(original, transforms.Resize{Size: []int{side}})
	sum := 0.0
	for i := range a {
		sum += math.Pow(float64(a[i])-float64(b[i]), 2)
	}
	return math.Sqrt(sum / float64(len(a)))
}
