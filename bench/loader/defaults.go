package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// workload describes the data that a training loop loads, and the work of its body with a batch.
type workload struct {
	name    string
	set     string // folder or file in the bench's folder
	batch   int
	count   int // batches that are measured
	shuffle bool
	link    bool // the dataset is in a bucket over a link
	pass    func() (map[string]loader.Transform, error)
	body    func(b []byte)
}

// firstBatches is how many batches Workers: 0 has to find its setting.
const firstBatches = 100

func workloads() []workload {
	read := func(b []byte) { runtime.KeepAlive(touch(b)) }
	list := []workload{
		{name: "784 B, in order", set: "784", batch: 256, count: 20000},
		{name: "784 B, shuffled", set: "784", batch: 256, count: 12000, shuffle: true},
		{name: "784 B, shuffled, normalized", set: "784", batch: 256, count: 3000, shuffle: true, pass: normalizedTo(1)},
		{name: "12288 B, in order", set: "12288", batch: 128, count: 1500},
		{name: "12288 B, shuffled", set: "12288", batch: 128, count: 1500, shuffle: true},
		{name: "12288 B, shuffled, normalized", set: "12288", batch: 128, count: 500, shuffle: true, pass: normalizedTo(3)},
		{name: "150528 B, in order", set: "150528", batch: 32, count: 400},
		{name: "150528 B, shuffled", set: "150528", batch: 32, count: 500, shuffle: true},
		{name: "150528 B, shuffled, normalized", set: "150528", batch: 32, count: 300, shuffle: true, pass: normalizedTo(3)},
		{name: "JPEG files, shuffled, decoded", set: "jpeg", batch: 8, count: 200, shuffle: true, pass: decoded},
		{name: "12288 B, gzip, shuffled", set: "12288.h5", batch: 32, count: 150, shuffle: true},
		{name: "12288 B, remote, shuffled", set: "12288", batch: 32, count: 100, shuffle: true, link: true},
	}
	for i := range list {
		list[i].body = read
	}
	busy := list[5]
	busy.name, busy.body = "12288 B, normalized, a step of one core", func(b []byte) {
		read(b)
		spinFor(2 * time.Millisecond)
	}
	all := list[5]
	all.name, all.body = "12288 B, normalized, a step of all cores", func(b []byte) {
		read(b)
		var done sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			done.Go(func() { spinWork(2_000_000) })
		}
		done.Wait()
	}
	return append(list, busy, all)
}

// spinFor keeps a core busy.
func spinFor(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

// spinWork does a fixed amount of work.
func spinWork(n int) {
	x := uint64(1)
	for range n {
		x = x*6364136223846793005 + 1
	}
	runtime.KeepAlive(x)
}

// normalizedTo makes normalized float32 of images of some channels.
func normalizedTo(channels int) func() (map[string]loader.Transform, error) {
	return func() (map[string]loader.Transform, error) {
		n := transforms.ImageNet
		if channels == 1 {
			n = transforms.Normalize{Mean: []float64{0.1307}, Std: []float64{0.3081}}
		}
		p, err := transforms.Compose(transforms.RandomHorizontalFlip{}, transforms.ToLayout{Layout: transforms.CHW},
			transforms.ConvertDType{DType: tensor.Float32}, n)
		return map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: transforms.CHW}}, err
	}
}

// decoded makes uint8 crops of image files.
func decoded() (map[string]loader.Transform, error) {
	p, err := transforms.Compose(transforms.RandomResizedCrop{Size: []int{112, 112}},
		transforms.ToLayout{Layout: transforms.CHW})
	return map[string]loader.Transform{"x": loader.Images{Pipeline: p}}, err
}

// defaults compares Workers: 0 with the best of a few fixed numbers. Each round begins with a new
// Loader, and measures what follows its first batches.
func (b *bench) defaults() error {
	if err := b.writeDefaults(); err != nil {
		return err
	}
	fixed := []variant{
		{"default", loader.Options{}},
		{"Synchronous", loader.Options{Workers: loader.Synchronous}},
		{"1 worker", loader.Options{Workers: 1}},
		{"2 workers", loader.Options{Workers: 2}},
		{"3 workers", loader.Options{Workers: 3}},
	}
	rows := [][]string{{"workload", "default, records/s", "Synchronous", "1 worker", "2 workers", "3 workers",
		"default over the best, fastest rounds", "by the clock", "workers found"}}
	for _, w := range workloads() {
		if b.o.match != "" && !strings.Contains(w.name, b.o.match) {
			continue
		}
		found := make(map[int]int)
		var list []measure.Contender
		for i, v := range fixed {
			list = append(list, measure.Contender{Name: v.name, Do: func(int, int) (measure.Cost, error) {
				c, st, err := b.loop(w, v.o)
				if i == 0 {
					found[st.Workers]++
				}
				return c, err
			}})
		}
		results, err := measure.Rounds(b.o.rounds, 1, 1, list)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		best, ours := held(results)
		row := []string{w.name}
		for _, r := range results {
			row = append(row, fmt.Sprintf("%.3g", 1/r.Fastest(measure.Wall)))
		}
		row = append(row, fastest(best, ours), best.Over(ours, measure.Wall).String(), fmt.Sprint(found))
		fmt.Fprintln(os.Stderr, strings.Join(row, "  "))
		rows = append(rows, row)
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// held returns the best of the fixed numbers, chosen by every second round, and the default, both in the other
// rounds: of five that are equal, the luckiest is faster than any.
func held(results []measure.Result) (best, ours measure.Result) {
	half := func(r measure.Result, from int) measure.Result {
		all := r.Rounds
		r.Rounds = nil
		for ; from < len(all); from += 2 {
			r.Rounds = append(r.Rounds, all[from])
		}
		return r
	}
	i := 1
	for k := 2; k < len(results); k++ {
		if half(results[k], 0).Median(measure.Wall) < half(results[i], 0).Median(measure.Wall) {
			i = k
		}
	}
	return half(results[i], 1), half(results[0], 1)
}

// loop does one loop, and returns what a record took after the first batches.
func (b *bench) loop(w workload, o loader.Options) (cost measure.Cost, st loader.Stats, err error) {
	src, err := b.openSet(w)
	if err != nil {
		return cost, st, err
	}
	defer src.Close()
	o.BatchSize, o.DropLast = w.batch, true
	if w.shuffle {
		o.Sampler = sampler.Shuffle{}
	}
	if w.pass != nil {
		if o.Transforms, err = w.pass(); err != nil {
			return cost, st, err
		}
	}
	ld, err := loader.New(src, o)
	if err != nil {
		return cost, st, err
	}
	defer ld.Close()
	n := 0
	var began measure.Began
	for _, epoch := range ld.Epochs(context.Background(), 1<<30) {
		for batch, err := range epoch {
			if err != nil {
				return cost, st, err
			}
			w.body(batch.Field("x").Bytes())
			switch n++; n {
			case firstBatches:
				began = measure.Begin()
			case firstBatches + w.count:
				return began.Cost().Per(w.count * w.batch), ld.Stats(), nil
			}
		}
	}
	return cost, st, nil
}

// source is a Source that can be closed.
type source interface {
	loader.Source
	Close() error
}

func (b *bench) openSet(w workload) (source, error) {
	path := filepath.Join(b.dir, w.set)
	if !w.link {
		return mmapds.Open(path)
	}
	bucket := new(remote.Memory)
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(path, e.Name()))
		if err != nil {
			return nil, err
		}
		bucket.Put("ds/"+e.Name(), data)
	}
	cache, err := os.MkdirTemp(b.dir, "cache-")
	if err != nil {
		return nil, err
	}
	ds, err := mirror.Open(context.Background(), &link{Bucket: bucket}, "ds",
		mirror.Options{CacheDir: cache, RequestBytes: 1 << 14})
	if err != nil {
		return nil, err
	}
	return cached{ds, cache}, nil
}

// cached removes its cache when it is closed.
type cached struct {
	*mirror.Dataset
	dir string
}

func (c cached) Close() error {
	defer os.RemoveAll(c.dir)
	return c.Dataset.Close()
}

// link is a bucket over a link with a round trip of 5 ms and 200 MB/s.
type link struct {
	remote.Bucket
	mu   sync.Mutex
	free time.Time
}

func (l *link) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	time.Sleep(5 * time.Millisecond)
	b, err := l.Bucket.ReadRange(ctx, key, off, n, etag)
	if err == nil {
		b.ReadCloser = linkBody{b.ReadCloser, l}
	}
	return b, err
}

type linkBody struct {
	io.ReadCloser
	l *link
}

func (b linkBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), 64<<10)])
	b.l.mu.Lock()
	if now := time.Now(); b.l.free.Before(now) {
		b.l.free = now
	}
	b.l.free = b.l.free.Add(time.Duration(n) * time.Second / 200e6)
	until := b.l.free
	b.l.mu.Unlock()
	time.Sleep(time.Until(until))
	return n, err
}

// writeDefaults makes the datasets that the other parts do not have.
func (b *bench) writeDefaults() error {
	d := &dataset{name: "12288", n: 1 << 13, shape: tensor.Shape{3, 64, 64}}
	if err := d.write(d.path(b)); err != nil {
		return err
	}
	jpeg := filepath.Join(b.dir, "jpeg")
	if _, err := os.Stat(jpeg); err == nil { // the last of them
		return nil
	}
	rng := rand.New(rand.NewPCG(1, 2))
	field := store.NewField("x", tensor.Uint8, 3, 64, 64)
	field.Layout = tensor.CHW
	schema := store.Schema{Fields: []store.Field{field}}
	w, err := hdf5.Create(d.path(b)+".h5", schema, hdf5.Options{Compress: &hdf5.Compression{Level: 4, ChunkRecords: 1}})
	if err := fillSet(w, err, schema, 1<<13, func(dst []byte) []byte {
		for i := range dst {
			dst[i] = byte(i/1024 + int(rng.Uint32()%8))
		}
		return dst
	}); err != nil {
		return err
	}
	field = store.NewField("x", tensor.Uint8)
	field.Ragged, field.Content = true, tensor.Image
	schema = store.Schema{Fields: []store.Field{field}}
	w, err = flat.Create(jpeg, schema, flat.Options{})
	return fillSet(w, err, schema, 256, func([]byte) []byte { return photo(rng) })
}

// fillSet appends n records.
func fillSet(w store.Writer, err error, schema store.Schema, n int, make func(dst []byte) []byte) error {
	if err != nil {
		return err
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for range n {
		r.Values[0] = make(r.Values[0])
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}

// photo returns a JPEG file of 224x224 pixels.
func photo(rng *rand.Rand) []byte {
	m := image.NewRGBA(image.Rect(0, 0, 224, 224))
	a, c := rng.IntN(200), rng.IntN(50)+3
	for y := range 224 {
		for x := range 224 {
			m.SetRGBA(x, y, color.RGBA{byte(a + x/c*9 + rng.IntN(20)), byte(y + x), byte(x * y / 97), 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 90}); err != nil {
		panic(err)
	}
	return b.Bytes()
}
