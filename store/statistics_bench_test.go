package store

import (
	"testing"

	"github.com/penstock/penstock/tensor"
)

// BenchmarkSummarize measures what a worker pays for checksum and statistics of an image.
func BenchmarkSummarize(b *testing.B) {
	for _, d := range []tensor.DType{tensor.Uint8, tensor.Float16, tensor.Float32} {
		for _, layout := range []string{tensor.CHW, tensor.HWC} {
			f := NewField("images", d, 3, 224, 224)
			if f.Layout = layout; layout == tensor.HWC {
				f.Shape = tensor.Shape{224, 224, 3}
			}
			s := Schema{Fields: []Field{f}}
			r := NewRecord(s)
			b.Run(d.String()+"/"+layout, func(b *testing.B) {
				b.SetBytes(int64(f.RecordBytes()))
				for b.Loop() {
					r.Summarize(s)
				}
			})
		}
	}
}
