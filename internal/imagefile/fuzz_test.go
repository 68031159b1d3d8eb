package imagefile

import (
	"errors"
	"image"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/internal/testkit/require"
)

// Any bytes give an image of the size in the header or one of this package's errors.
func FuzzOpen(f *testing.F) {
	kinds(f, func(_ string, data []byte) { f.Add(data, true) })
	paths, err := filepath.Glob(corruptDir + "/*")
	require.NoError(f, err)
	for _, p := range paths {
		data, err := os.ReadFile(p)
		require.NoError(f, err)
		f.Add(data, false)
	}
	rgb, gray := New(Options{MaxPixels: 1 << 18}), New(Options{MaxPixels: 1 << 18, Color: Gray, Orient: true})
	f.Fuzz(func(t *testing.T, data []byte, color bool) {
		d, channels := gray, 1
		if color {
			d, channels = rgb, 3
		}
		src, err := d.Open(data)
		if err != nil {
			checkKind(t, err)
			return
		}
		w, h, c := src.Size()
		if w <= 0 || h <= 0 || w*h > 1<<18 || c != channels {
			t.Fatalf("size %dx%dx%d", w, h, c)
		}
		rows := 0
		err = src.Scan(image.Rect(0, 0, w, h), func(_ int, s pixel.Image) error {
			rows += s.H
			_ = s.Pix[(s.H-1)*s.Stride+(s.W-1)*s.Step+s.C-1]
			return nil
		})
		if err != nil {
			checkKind(t, err)
		} else if rows != h {
			t.Fatalf("%d rows of %d", rows, h)
		}
	})
}

func checkKind(t *testing.T, err error) {
	var e *format.Error
	if !errors.As(err, &e) || e.Kind == nil || e.Msg == "" {
		t.Fatalf("%T: %v", err, err)
	}
}
