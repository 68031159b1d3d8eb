package decode

import (
	"bytes"
	"image"
	"image/jpeg"
	"os"
	"testing"

	"github.com/penstock/penstock/transforms"
)

func readPhotos(b *testing.B, limit int) (files [][]byte) {
	for _, p := range photos(b, limit) {
		data, err := os.ReadFile(p)
		if err != nil {
			b.Fatal(err)
		}
		files = append(files, data)
	}
	return files
}

// BenchmarkPhoto opens photos and scans all their pixels, one photo an operation.
func BenchmarkPhoto(b *testing.B) {
	files, d := readPhotos(b, 40), New(Options{})
	defer d.Close()
	var r image.Rectangle
	nop := func(int, transforms.Image) error { return nil }
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		src, err := d.Open(files[i%len(files)])
		if err != nil {
			b.Fatal(err)
		}
		r.Max.X, r.Max.Y, _ = src.Size()
		if err := src.Scan(r, nop); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPhotoStd is image/jpeg up to its planes, to compare with.
func BenchmarkPhotoStd(b *testing.B) {
	files := readPhotos(b, 40)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := jpeg.Decode(bytes.NewReader(files[i%len(files)])); err != nil {
			b.Fatal(err)
		}
	}
}
