package loadbench

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// batchSizes is the tutorial's look at batch sizes alone: records are drawn without a delay,
// and an epoch ends after 10 batches, or earlier where the dataset does.
func batchSizes(b *bench) error {
	const records, batches = 1000, 10
	shape := Defaults().Shape
	m := maker{ctx: b.ctx, out: tensor.Spec{Name: imagesField, DType: tensor.Float32, Shape: shape}, seed: b.o.Seed}
	t := Table{Name: b.trial.Name, Title: b.trial.Title, Notes: b.trial.notes(), columns: []column{colTotal, colRate, colFirst, colP50, colP99, colLimit, colPublished}}
	var rows []*setup
	for i, size := range []int{16, 32, 64, 128} {
		s := b.epochs(fmt.Sprintf("%d records", size), numbers(records), loader.Options{BatchSize: size, Sampler: sampler.Shuffle{}, Workers: 4, Prefetch: 8}, 1)
		s.opts.Transforms = map[string]loader.Transform{numbersField: m}
		s.batches, s.floor.makes = batches, true
		s.published = &Published{Text: fmt.Sprintf("%.3f s", []float64{.178, .365, .710, .930}[i])}
		rows = append(rows, s)
	}
	return b.table(t, rows)
}

// ffcvSuites reads records of three sizes in both orders by 1, 8 and 16 workers.
func ffcvSuites(b *bench) error {
	const batch = 500
	for _, size := range []int{3072, 131072, 450000} {
		ds, err := b.stock(fmt.Sprintf("bytes-%d", size), 3000, b.noise(), store.NewField("x", tensor.Uint8, size))
		if err != nil {
			return err
		}
		t := Table{Name: fmt.Sprintf("%s-%d", b.trial.Name, size), Title: fmt.Sprintf("%s: records of %d bytes", b.trial.Name, size),
			columns: []column{colTotal, colRate, colBytes, colWorkers, colFirst, colP50, colP99, colCopied, colLimit}}
		if size == 450000 {
			t.Notes = append(b.trial.notes(), "Buffers have 2 GiB at most: where more workers need more, there are fewer.")
		}
		if err := b.table(t, b.suite(ds, batch)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) suite(src loader.Source, batch int) (rows []*setup) {
	for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
		for _, workers := range []int{1, 8, 16} {
			s := b.epochs(orderName(order)+", "+cli.Counted(int64(workers), "worker"), src, loader.Options{BatchSize: batch, Sampler: order, Workers: workers}, b.part(8))
			_, s.floor.views = order.(sampler.Sequential)
			if s.opts.Budget = min(b.o.Budget, 2<<30); s.floor.views {
				s.opts.Budget = 0
			}
			rows = append(rows, s)
		}
	}
	return rows
}

// ffcvImages crops, mirrors and normalises images out of memory.
func ffcvImages(b *bench) error {
	const side, crop = 256, 224
	field := store.NewField(imagesField, tensor.Uint8, side, side, 3)
	field.Layout = store.HWC
	ds, err := b.stock("images", b.part(4000), b.noise(), field)
	if err != nil {
		return err
	}
	t := Table{Name: b.trial.Name, Title: b.trial.Title, Notes: b.trial.notes(), columns: []column{colTotal, colRate, colCore, colWorkers, colP50, colP99, colPublished}}
	augment := []transforms.Transform{transforms.RandomResizedCrop{Size: []int{crop}}, transforms.RandomHorizontalFlip{}}
	normal := append(augment[:2:2], transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: tensor.Float32}, transforms.ImageNet)
	var rows []*setup
	for _, workers := range slices.Compact([]int{1, runtime.GOMAXPROCS(0)}) {
		for _, kind := range []struct {
			name  string
			steps []transforms.Transform
		}{{"as stored", nil}, {"cropped, mirrored", augment}, {"cropped, mirrored, normalised to float32", normal}} {
			s := b.epochs(kind.name+", "+cli.Counted(int64(workers), "worker"), ds, loader.Options{BatchSize: 256, Sampler: sampler.Shuffle{}, Workers: workers}, 2)
			if kind.steps != nil {
				p, err := transforms.Compose(kind.steps...)
				if err != nil {
					return err
				}
				s.opts.Transforms = map[string]loader.Transform{imagesField: loader.Images{Pipeline: p, Layout: transforms.HWC}}
				s.published = &Published{Text: "1,800 a core"}
			}
			rows = append(rows, s)
		}
	}
	return b.table(t, rows)
}
