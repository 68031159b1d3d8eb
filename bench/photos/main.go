// Command photos measures training from photographs as they are: a loader.Loader with
// loader.Images, and with -python PyTorch, DALI, FFCV and others, in one run.
//
//	go run ./photos [-data photos.tar] [-count 1000] [-rounds 3] [-python A,B]
//
// The work: RandomResizedCrop(224), a random flip, and float32 normalized, channels first, in
// shuffled batches of 64, by two threads. Photos are repeated up to that number. The interpreters
// that -python names are asked in turn what they have: not all libraries suit one environment.
package main

import (
	"archive/tar"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

const (
	side    = 224
	batch   = 64
	threads = 2
)

func main() {
	var b bench
	flag.StringVar(&b.data, "data", "", "archive of photos; default: that of ../shared/data")
	flag.IntVar(&b.count, "count", 1000, "photos, repeated if there are fewer")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds")
	python := flag.String("python", "", "Pythons with peers, between commas")
	flag.Parse()
	if *python != "" {
		b.pythons = strings.Split(*python, ",")
	}
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "photos:", err)
		os.Exit(1)
	}
}

type bench struct {
	data          string
	count, rounds int
	pythons       []string
	dir           string // with the photos as files, one folder a class
	versions      []string
	list          []measure.Contender
	children      []*measure.Child
}

func (b *bench) run() (err error) {
	if b.dir, err = os.MkdirTemp("", "bench-photos-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	defer func() {
		for _, c := range b.children {
			c.Close()
		}
	}()
	if err := b.unpack(); err != nil {
		return err
	}
	closeLoader, err := b.ours()
	if err != nil {
		return err
	}
	defer closeLoader()
	for _, python := range b.pythons {
		if err := b.peers(python); err != nil {
			return err
		}
	}
	results, err := measure.Rounds(b.rounds, b.count, b.count, b.list)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%s\n%d photos, %d rounds\n\n", measure.Machine(), strings.Join(b.versions, "; "), b.count, b.rounds)
	measure.Lines(os.Stdout, "Photos", "photo", results)
	rows := [][]string{{"RandomResizedCrop, flip, float32, 2 threads", "photos/s", "us of CPU",
		"vs penstock, by the clock", "by CPU time"}}
	for _, r := range results {
		rows = append(rows, []string{r.Name, fmt.Sprintf("%.0f", 1/r.Median(measure.Wall)),
			fmt.Sprintf("%.0f", r.Median(measure.CPU)*1e6),
			r.Over(results[0], measure.Wall).String(), r.Over(results[0], measure.CPU).String()})
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// unpack writes the photos as files.
func (b *bench) unpack() error {
	if b.data == "" {
		b.data = measure.Find("shared/data/photos.tar")
	}
	f, err := os.Open(b.data)
	if err != nil {
		return fmt.Errorf("no photos: name an archive by -data: %w", err)
	}
	defer f.Close()
	var photos [][]byte
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !strings.HasSuffix(h.Name, ".JPEG") {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		photos = append(photos, data)
	}
	if len(photos) == 0 {
		return fmt.Errorf("%s holds no file .JPEG", b.data)
	}
	if err := os.Mkdir(filepath.Join(b.dir, "all"), 0o777); err != nil {
		return err
	}
	for i := range b.count {
		if err := os.WriteFile(b.photo(i), photos[i%len(photos)], 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) photo(i int) string {
	return filepath.Join(b.dir, "all", fmt.Sprintf("%06d.jpg", i))
}

// dataset stores the files as preprocess --keep-encoded does.
func (b *bench) dataset() (*mmapds.Dataset, error) {
	field := store.NewRagged("images", tensor.Uint8)
	field.Content = tensor.Image
	schema := store.Schema{Fields: []store.Field{field}}
	path := filepath.Join(b.dir, "dataset")
	w, err := flat.Create(path, schema, flat.Options{})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	record := store.NewRecord(schema)
	for i := range b.count {
		if record.Values[0], err = os.ReadFile(b.photo(i)); err != nil {
			return nil, err
		}
		if err := w.Append(record); err != nil {
			return nil, err
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		return nil, err
	}
	return mmapds.Open(path)
}

// ours is penstock, the first contender.
func (b *bench) ours() (closing func(), err error) {
	ds, err := b.dataset()
	if err != nil {
		return nil, err
	}
	p, err := transforms.Compose(
		transforms.RandomResizedCrop{Size: []int{side}}, transforms.RandomHorizontalFlip{},
		transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}},
	)
	if err != nil {
		return nil, err
	}
	ld, err := loader.New(ds, loader.Options{
		BatchSize: batch, Sampler: sampler.Shuffle{}, Workers: threads,
		Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: p}},
	})
	if err != nil {
		return nil, err
	}
	epoch := 0
	b.list = append(b.list, measure.Contender{Name: "penstock, 2 workers", Do: measure.Timed(func(int, int) error {
		n := 0
		for batch, err := range ld.Epoch(context.Background(), epoch) {
			if err != nil {
				return err
			}
			n += batch.Len()
		}
		if n != b.count {
			return fmt.Errorf("%d photos of %d", n, b.count)
		}
		epoch++
		return nil
	})})
	return func() { _ = errors.Join(ld.Close(), ds.Close()) }, nil
}

// peers adds what an interpreter has.
func (b *bench) peers(python string) error {
	c, a, err := measure.StartPeers(python, "", "photos.py", b.dir)
	if err != nil {
		return err
	}
	b.children = append(b.children, c)
	b.versions = append(b.versions, a.Text)
	for _, w := range a.Ways {
		known := false
		for _, other := range b.list {
			known = known || other.Name == w.Text
		}
		if !known {
			b.list = append(b.list, measure.Contender{Name: w.Text, Do: c.Doing(w.Name, "")})
		}
	}
	return nil
}
