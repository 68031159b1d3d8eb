package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// types has every element type, and shards of different sizes.
var types = dataset{name: "types", records: 9000, shardBytes: 64 << 10, schema: store.Schema{Fields: []store.Field{
	store.NewField("bool", tensor.Bool),
	store.NewField("uint8", tensor.Uint8, 3),
	store.NewField("int8", tensor.Int8),
	store.NewField("uint16", tensor.Uint16, 2, 2),
	store.NewField("int16", tensor.Int16),
	store.NewField("uint32", tensor.Uint32),
	store.NewField("int32", tensor.Int32, 1),
	store.NewField("uint64", tensor.Uint64),
	store.NewField("int64", tensor.Int64),
	store.NewField("float16", tensor.Float16, 2),
	store.NewField("bfloat16", tensor.BFloat16, 3),
	store.NewField("float32", tensor.Float32),
	store.NewField("float64", tensor.Float64, 2),
}}}

var datasets = []dataset{
	types,
	{name: "images", records: 1500, shardBytes: 100 << 10, schema: images(tensor.CHW, 3, 10, 16)},
	{name: "pixels", records: 100, schema: images(tensor.HWC, 10, 16, 3)},
	ragged,
	{name: "empty", records: 10, schema: store.Schema{Fields: []store.Field{store.NewRagged("nothing", tensor.Float32, 2)}}},
	{name: "large", records: 50, shardBytes: 64 << 10, schema: store.Schema{Fields: []store.Field{
		store.NewField("rows", tensor.Float32, 1500),
	}}},
}

// ragged has fields of variable length, some records with no rows, and splits.
var ragged = dataset{name: "ragged", records: 700, shardBytes: 6 << 10, splits: []string{"train", "val", "none"}, schema: store.Schema{Fields: []store.Field{
	store.NewRagged("tokens", tensor.Int32),
	store.NewField("labels", tensor.Uint64),
	store.NewRagged("boxes", tensor.BFloat16, 4),
	text("caption", tensor.Text),
	text("file", tensor.Image),
}}}

func text(name, content string) store.Field {
	f := store.NewRagged(name, tensor.Uint8)
	f.Content = content
	return f
}

// rows is how many rows a field of record i has.
func rows(f store.Field, i int) int {
	if f.Name == "nothing" {
		return 0
	}
	return i * 7 % 13
}

// images is a schema as preprocess makes it.
func images(layout string, shape ...int) store.Schema {
	image := store.NewField("images", tensor.Uint8, shape...)
	image.Layout = layout
	image.Normalization = &store.Normalization{Scale: 255, Mean: []float64{0.485, 0.456, 0.406}, Std: []float64{0.229, 0.224, 0.225}}
	label := store.NewField("labels", tensor.Int64)
	label.Classes = []string{"cat", "dög", "\u2028"}
	return store.Schema{Fields: []store.Field{image, label}}
}

// value writes field f of record i: random bits, so that NaNs and infinities are among them.
func value(f store.Field, i int, dst []byte) {
	switch {
	case f.Name == "labels":
		binary.LittleEndian.PutUint64(dst, uint64(i%3))
	case f.Content == tensor.Text:
		copy(dst, strings.Repeat("aß€𐍈", 3)[:len(dst)]) // may end within a character
	case f.DType == tensor.Bool:
		dst[0] = byte(i / 3 % 2)
	default:
		random := rand.New(rand.NewPCG(uint64(i), uint64(len(f.Name)+len(dst))))
		for k := range dst {
			dst[k] = byte(random.Uint32())
		}
		if f.DType == tensor.Float64 {
			for k := 0; k < len(dst); k += 8 {
				dst[k+7] = dst[k+7]&0x80 | 0x3f // no squares that are beyond its range
			}
		}
	}
}

// writeFloats writes the values that NumPy has no type for as float32: bfloat16, and
// bytes that have to be normalized.
func writeFloats(path string, f store.Field, v tensor.View) error {
	var out []float32
	switch {
	case f.DType == tensor.BFloat16:
		for _, b := range tensor.As[tensor.Brain](v) {
			out = append(out, b.Float32())
		}
	case f.Normalization != nil:
		var err error
		if out, err = normalize(f, v); err != nil {
			return err
		}
	default:
		return nil
	}
	data := make([]byte, 0, 4*len(out))
	for _, x := range out {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return os.WriteFile(path, data, 0o666)
}

// normalize does what transforms do with stored images of that layout.
func normalize(f store.Field, v tensor.View) ([]float32, error) {
	steps := []transforms.Transform{
		transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: f.Normalization.Mean, Std: f.Normalization.Std},
	}
	pixels := func(record []byte) transforms.Source {
		return &transforms.Image{Pix: record, W: 16, H: 10, C: 3, Step: 3, Stride: 48}
	}
	if f.Layout == tensor.CHW {
		steps = append([]transforms.Transform{transforms.ToLayout{Layout: transforms.CHW}}, steps...)
		pixels = func(record []byte) transforms.Source {
			return &transforms.Planar{Pix: record, W: 16, H: 10, C: 3}
		}
	}
	p, err := transforms.Compose(steps...)
	if err != nil {
		return nil, err
	}
	run, size := p.Runner(), f.Shape.Elems()
	out, dst := make([]float32, 0, v.Len()*size), make([]byte, 4*size)
	for i := range v.Len() {
		if err := run.Do(dst, pixels(v.Slice(i, i+1).Bytes())); err != nil {
			return nil, err
		}
		for k := range size {
			out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(dst[4*k:])))
		}
	}
	return out, nil
}
