package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// writeLoaded writes the images of a shuffled epoch with random crops, as a Loader makes them.
func writeLoaded(folder string) error {
	ds, err := mmapds.Open(filepath.Join(folder, "images"), mmapds.WithFields("images"))
	if err != nil {
		return err
	}
	defer ds.Close()
	p, err := transforms.Compose(transforms.RandomResizedCrop{Size: []int{8}}, transforms.RandomHorizontalFlip{}, transforms.ToTensor{},
		transforms.Normalize{Mean: []float64{0.5, 0.5, 0.5}, Std: []float64{0.25, 0.25, 0.25}})
	if err != nil {
		return err
	}
	ld, err := loader.New(ds, loader.Options{
		BatchSize: 100, Sampler: sampler.Shuffle{}, Seed: 3, Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: p, Layout: transforms.CHW}},
	})
	if err != nil {
		return err
	}
	defer ld.Close()
	var all []byte
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			return err
		}
		all = append(all, b.Field("images").Bytes()...)
	}
	return os.WriteFile(filepath.Join(folder, "loaded.bin"), all, 0o666)
}

// writePhotos makes a dataset of 20 image files of several sizes, photo i of the level 12*i, the
// sixth of which cannot be decoded.
func writePhotos(folder string) error {
	schema := store.Schema{Fields: []store.Field{text("image", tensor.Image), store.NewField("labels", tensor.Int64)}}
	w, err := flat.Create(filepath.Join(folder, "photos"), schema, flat.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range 20 {
		m := image.NewRGBA(image.Rect(0, 0, 20+i, 30-i))
		draw.Draw(m, m.Bounds(), image.NewUniform(color.Gray{uint8(12 * i)}), image.Point{}, draw.Src)
		var file bytes.Buffer
		if err := png.Encode(&file, m); err != nil {
			return err
		}
		if i == 5 {
			file.Truncate(40)
		}
		r.Values[0] = append(r.Values[0][:0], file.Bytes()...)
		binary.LittleEndian.PutUint64(r.Values[1], uint64(i%3))
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}
