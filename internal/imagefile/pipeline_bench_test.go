package imagefile

import (
	"bytes"
	"image/jpeg"
	"testing"
	"unsafe"

	"github.com/disintegration/imaging"

	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

var (
	mean = []float64{.485, .456, .406}
	std  = []float64{.229, .224, .225}
)

// usual is the usual code of a Go program without this module: image/jpeg, imaging, a loop.
func usual(dst []float32, data []byte) error {
	m, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return err
	}
	w, h := 256, 0
	if m.Bounds().Dx() > m.Bounds().Dy() {
		w, h = 0, 256
	}
	n := imaging.CropCenter(imaging.Resize(m, w, h, imaging.Linear), 224, 224)
	for c := range 3 {
		for y := range 224 {
			for x := range 224 {
				v := float64(n.Pix[y*n.Stride+4*x+c]) / 255
				dst[(c*224+y)*224+x] = float32((v - mean[c]) / std[c])
			}
		}
	}
	return nil
}

func enlarged(b *testing.B, files [][]byte) (large [][]byte) {
	for _, data := range files {
		m, err := jpeg.Decode(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		if err := jpeg.Encode(&out, imaging.Resize(m, 2000, 0, imaging.Linear), &jpeg.Options{Quality: 90}); err != nil {
			b.Fatal(err)
		}
		large = append(large, out.Bytes())
	}
	return large
}

// BenchmarkPipeline takes a photo's bytes to 224x224 normalized float32, by turns with this decoder
// and in the usual way, and reports CPU time an image and the ratio.
func BenchmarkPipeline(b *testing.B) {
	files := readPhotos(b, 60)
	b.Run("as-is", func(b *testing.B) { benchPipeline(b, files) })
	b.Run("2000px", func(b *testing.B) { benchPipeline(b, enlarged(b, files[:8])) })
}

func benchPipeline(b *testing.B, files [][]byte) {
	p, err := transforms.Compose(transforms.Resize{Size: []int{256}}, transforms.CenterCrop{Size: []int{224}},
		transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: mean, Std: std})
	if err != nil {
		b.Fatal(err)
	}
	run, d := p.Runner(), New(Options{})
	dst := make([]float32, 3*224*224)
	record := unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst))
	ways := []variant{
		{"usual", func(data []byte) error { return usual(dst, data) }},
		{"penstock", func(data []byte) error {
			src, err := d.Open(data)
			if err != nil {
				return err
			}
			return run.Do(record, src)
		}},
	}
	spent := byTurns(b, files, ways)
	b.ReportMetric(spent[0]/spent[1], "x-penstock")
}
