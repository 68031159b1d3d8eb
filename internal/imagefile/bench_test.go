package imagefile

import (
	"bytes"
	"image"
	"image/draw"
	"image/jpeg"
	"os"
	"testing"

	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/internal/sys/cputime"
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

// A variant takes the bytes of a JPEG to RGB.
type variant struct {
	unit string
	do   func(data []byte) error
}

func variants(b *testing.B) []variant {
	d := New(Options{})
	nop := func(int, pixel.Image) error { return nil }
	all := func(src pixel.Source, err error) error {
		if err != nil {
			return err
		}
		w, h, _ := src.Size()
		return src.Scan(image.Rect(0, 0, w, h), nop)
	}
	return []variant{
		{"penstock", func(data []byte) error { return all(d.Open(data)) }},
		{"image/jpeg", func(data []byte) error {
			_, err := jpeg.Decode(bytes.NewReader(data))
			return err
		}},
		{"image/jpeg+draw", func(data []byte) error {
			m, err := jpeg.Decode(bytes.NewReader(data))
			if err != nil {
				return err
			}
			draw.Draw(image.NewRGBA(m.Bounds()), m.Bounds(), m, m.Bounds().Min, draw.Src)
			return nil
		}},
	}
}

// BenchmarkJPEG takes turns between ways to get from a photo's bytes to RGB (image/jpeg
// alone: to planes) and reports the CPU time of each, an image.
func BenchmarkJPEG(b *testing.B) {
	byTurns(b, readPhotos(b, 60), variants(b))
}

// byTurns gives every file to all ways, one file an iteration, and reports the CPU time of each
// way, an image. It returns what each has spent, in seconds.
func byTurns(b *testing.B, files [][]byte, ways []variant) (spent []float64) {
	spent = make([]float64, len(ways))
	images := 0
	for b.Loop() {
		data := files[images%len(files)]
		images++
		for i, v := range ways {
			start := cputime.Clock()
			if err := v.do(data); err != nil {
				b.Fatal(err)
			}
			spent[i] += (cputime.Clock() - start).Seconds()
		}
	}
	for i, v := range ways {
		b.ReportMetric(spent[i]/float64(images)*1e6, v.unit+"-us")
	}
	return spent
}
