package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// goldenSampler is the order in which a Loader with batches of 60 and seed 9 yields records in two epochs.
type goldenSampler struct {
	Name    string    `json:"name"`
	Dataset string    `json:"dataset"`
	Batches int       `json:"batches"`
	First   [2][]int  `json:"first"` // records of the first batch
	CRC32   [2]uint32 `json:"crc32"` // of all records, as little endian int64
}

// allSamplers are those that a DataLoader in Python can have, with the parameters in
// test_dataloader.py.
func allSamplers() ([]goldenSampler, error) {
	weights := make([]float64, 1500)
	for i := range weights {
		weights[i] = float64(i % 7)
	}
	weighted, err := sampler.NewWeighted(weights, 1000)
	if err != nil {
		return nil, err
	}
	both, err := combine.NewConcat(numbers(1500), numbers(1500))
	if err != nil {
		return nil, err
	}
	mix, err := sampler.NewMix(both.Sizes(), []float64{3, 1}, 900)
	if err != nil {
		return nil, err
	}
	var lengths []int
	for split := range 2 { // records of a split are together
		for i := range ragged.records {
			if i%5/4 == split {
				lengths = append(lengths, rows(ragged.schema.Fields[0], i))
			}
		}
	}
	buckets, err := sampler.NewLengthBuckets(lengths, 60, 5)
	if err != nil {
		return nil, err
	}
	var indices []int
	for i := 7; i < 1400; i += 9 {
		indices = append(indices, i)
	}
	var out []goldenSampler
	for _, s := range []struct {
		name, dataset string
		src           loader.Source
		order         sampler.Sampler
	}{
		{"sequential", "images", numbers(1500), nil},
		{"shuffle", "images", numbers(1500), sampler.Shuffle{}},
		{"block", "images", numbers(1500), sampler.Block{Size: 16}},
		{"weighted", "images", numbers(1500), weighted},
		{"mix", "both", both, mix},
		{"length_buckets", "ragged", numbers(ragged.records), buckets},
		{"regions", "images", numbers(1500), sampler.Regions{Count: 5, Batch: 60, Inner: sampler.Block{Size: 4}}},
		{"subset", "images", numbers(1500), sampler.Subset{Indices: indices, Inner: sampler.Shuffle{}}},
		{"ranges", "images", numbers(1500), sampler.Subset{Ranges: [][2]int{{3, 90}, {100, 1000}}}},
		{"split", "images", numbers(1500), sampler.Split{Seed: 11, From: 0.25, To: 0.75, Inner: sampler.Shuffle{}}},
	} {
		g := goldenSampler{Name: s.name, Dataset: s.dataset}
		if err := g.fill(s.src, s.order); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		out = append(out, g)
	}
	return out, nil
}

func (g *goldenSampler) fill(src loader.Source, order sampler.Sampler) error {
	ld, err := loader.New(src, loader.Options{BatchSize: 60, Sampler: order, Seed: 9})
	if err != nil {
		return err
	}
	defer ld.Close()
	g.Batches = ld.Batches(0)
	for epoch := range g.First {
		var all []byte
		for b, err := range ld.Epoch(context.Background(), epoch) {
			if err != nil {
				return err
			}
			if b.Step() == 0 {
				g.First[epoch] = append(g.First[epoch], b.Indices()...)
			}
			for _, i := range b.Indices() {
				all = binary.LittleEndian.AppendUint64(all, uint64(i))
			}
		}
		g.CRC32[epoch] = crc32.ChecksumIEEE(all)
	}
	return nil
}

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
