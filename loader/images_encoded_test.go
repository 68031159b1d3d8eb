package loader_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// kinds holds an image file of every kind.
const kinds = "../internal/imagefile/testdata/kinds"

// kindsOfFiles returns image files of every kind that can be opened.
func kindsOfFiles(t testing.TB) (files [][]byte) {
	t.Helper()
	entries, err := os.ReadDir(kinds)
	require.NoError(t, err)
	d := imagefile.New(imagefile.Options{})
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(kinds, e.Name()))
		require.NoError(t, err)
		if _, err := d.Open(data); err == nil {
			files = append(files, data)
		}
	}
	if len(files) < 100 {
		t.Fatalf("%d files in %s", len(files), kinds)
	}
	return files
}

// imageFiles is a memory with a further field "t" that holds image files.
type imageFiles struct {
	*memory
	all  []byte
	ends []int64
}

func newFiles(files [][]byte) *imageFiles {
	m := &imageFiles{memory: newMemorySource(len(files), 4), ends: []int64{0}}
	m.specs = append(m.specs, tensor.Spec{Name: "t", DType: tensor.Uint8, Ragged: true, Content: tensor.Image})
	for _, f := range files {
		m.all = append(m.all, f...)
		m.ends = append(m.ends, int64(len(m.all)))
	}
	return m
}

func (m *imageFiles) file(i int) []byte { return m.all[m.ends[i]:m.ends[i+1]] }

func (m *imageFiles) SliceRagged(_ string, a, b int, offsets []int64) (tensor.View, error) {
	for i := a; i <= b; i++ {
		offsets[i-a] = m.ends[i] - m.ends[a]
	}
	return tensor.Of(m.specs[2], int(offsets[b-a]), m.all[m.ends[a]:m.ends[b]]), nil
}

func (m *imageFiles) Lengths(_ context.Context, _ string, indices []int, offsets []int64) error {
	for i, r := range indices {
		offsets[i+1] = offsets[i] + m.ends[r+1] - m.ends[r]
	}
	return nil
}

func (m *imageFiles) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	dst = dst[:0]
	for _, r := range indices {
		dst = append(dst, m.file(r)...)
	}
	return dst, m.Lengths(ctx, field, indices, offsets)
}

// photo returns a JPEG of w x h pixels.
func photo(w, h int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetRGBA(x, y, color.RGBA{uint8(x + r.IntN(32)), uint8(y + r.IntN(32)), uint8(x + y), 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// training is a pipeline as photographs get it.
func training(t testing.TB) *transforms.Pipeline {
	t.Helper()
	p, err := transforms.Compose(
		transforms.RandomResizedCrop{Size: []int{16, 24}}, transforms.RandomHorizontalFlip{}, transforms.ColorJitter{Brightness: []float64{.6, 1.4}},
		transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: []float64{.5, .4, .3}, Std: []float64{.2, .3, .4}},
	)
	require.NoError(t, err)
	return p
}

// TestFilesAreThoseOfThePipeline compares batches of files of every kind with a decoder and a
// Runner of one's own.
func TestFilesAreThoseOfThePipeline(t *testing.T) {
	p := training(t)
	src := newFiles(kindsOfFiles(t))
	d, run := imagefile.New(imagefile.Options{}), p.Runner()
	want := make([]float32, 3*16*24)
	for _, workers := range []int{loader.Synchronous, 1, 3} {
		ld := openWords(t, src, loader.Options{
			BatchSize: 16, Seed: 7, Sampler: sampler.Shuffle{}, Workers: workers,
			Transforms: map[string]loader.Transform{"t": loader.Images{Pipeline: p}},
		})
		records := 0
		for b, err := range ld.Epoch(t.Context(), 2) {
			require.NoError(t, err)
			x := tensor.As[float32](b.Field("t"))
			for i, r := range b.Indices() {
				m, err := d.Open(src.file(r))
				require.NoError(t, err)
				require.NoError(t, run.DoRand(unsafe.Slice((*byte)(unsafe.Pointer(&want[0])), 4*len(want)), m, transforms.NewRand(7, 2, uint64(r))))
				if !slices.Equal(x[i*len(want):(i+1)*len(want)], want) {
					t.Fatalf("%d workers: record %d differs", workers, r)
				}
				if ends := b.Offsets("t"); ends[i+1]-ends[i] != src.ends[r+1]-src.ends[r] {
					t.Fatalf("record %d: offsets say %d bytes", r, ends[i+1]-ends[i])
				}
				records++
			}
		}
		if st := ld.Stats(); records != src.Len() || st.ReadBytes < int64(len(src.all)) || st.ReadBytes > int64(12*records+len(src.all)) {
			t.Errorf("%d workers: %d records of %d, %d bytes read; files have %d", workers, records, src.Len(), st.ReadBytes, len(src.all))
		}
	}
}

func TestFilesOfOneWorkerAllocateNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checked builds record where a batch is kept")
	}
	var files [][]byte
	for i := range 64 {
		files = append(files, photo(40+i%3*10, 60-i%5*4, uint64(i)))
	}
	files = slices.Repeat(files, 50)
	ld := openWords(t, newFiles(files), loader.Options{
		BatchSize: 8, Sampler: sampler.Shuffle{}, Workers: 1, Transforms: map[string]loader.Transform{"t": loader.Images{Pipeline: training(t)}},
	})
	next, stop := pull(ld)
	defer stop()
	for range 200 {
		next(t)
	}
	if got := testing.AllocsPerRun(100, func() { next(t) }); got != 0 {
		t.Errorf("%v allocations a batch", got)
	}
}

// TestCorruptFiles loads photos of which some cannot be decoded.
func TestCorruptFiles(t *testing.T) {
	const n = 120
	bomb := photo(8, 8, 0)
	at := bytes.Index(bomb, []byte{0xff, 0xc0}) + 5
	copy(bomb[at:], []byte{0xff, 0xff, 0xff, 0xff}) // 65535 x 65535
	var large bytes.Buffer
	require.NoError(t, png.Encode(&large, image.NewGray(image.Rect(0, 0, 200, 200))))
	reasons := map[int]string{
		3: "the file is empty", 17: "truncated", 40: "looks like text", 77: "exceeds limit of 30000 pixels", 90: "exceeds limit of 30000 pixels", 119: "truncated",
	}
	files := make([][]byte, n)
	for i := range files {
		files[i] = photo(40, 30+i, uint64(i))
	}
	files[3], files[17], files[40], files[77], files[90] = nil, files[17][:len(files[17])/2], []byte("not a photo at all"), bomb, large.Bytes()
	files[119] = files[119][:10]
	tf := map[string]loader.Transform{"t": loader.Images{Pipeline: training(t), MaxPixels: 30000}}

	_, err := run(t.Context(), openWords(t, newFiles(files), loader.Options{BatchSize: 10, Workers: 2, Transforms: tf}), ignore)
	var e *loader.Error
	if !errors.As(err, &e) || e.Record != 3 || e.Field != "t" || !strings.Contains(err.Error(), reasons[3]) {
		t.Errorf("Fail: %v", err)
	}
	for _, onError := range []loader.OnError{loader.Backfill, loader.Blank} {
		var mu sync.Mutex
		reported := make(map[int]string)
		ld := openWords(t, newFiles(files), loader.Options{
			BatchSize: 10, Sampler: sampler.Shuffle{}, Workers: 2, Transforms: tf, OnError: onError,
			Report: func(e *loader.Error) {
				mu.Lock()
				defer mu.Unlock()
				reported[e.Record] = e.Error()
			},
		})
		valid := 0
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			x := tensor.As[float32](b.Field("t"))
			size := len(x) / b.Len()
			for i, ok := range b.Mask() {
				if ok {
					valid++
				}
				zero := !slices.ContainsFunc(x[i*size:(i+1)*size], func(v float32) bool { return v != 0 })
				if zero != (onError == loader.Blank && !ok) {
					t.Errorf("record %d: valid %v, all zero %v", b.Indices()[i], ok, zero)
				}
			}
		}
		if valid != n-len(reasons) || len(reported) != len(reasons) {
			t.Errorf("%v: %d valid records, %d reported", onError, valid, len(reported))
		}
		for r, reason := range reasons {
			if !strings.Contains(reported[r], reason) || !strings.Contains(reported[r], fmt.Sprintf("record %d", r)) {
				t.Errorf("%v: record %d: %q; want %q", onError, r, reported[r], reason)
			}
		}
	}
}

func TestFilesThatDoNotFit(t *testing.T) {
	open, err := transforms.Compose(transforms.Resize{Size: []int{64}})
	require.NoError(t, err)
	tooLarge, err := transforms.Compose(transforms.RandomCrop{Size: []int{5000}})
	require.NoError(t, err)
	fits, err := transforms.Compose(transforms.RandomCrop{Size: []int{300}})
	require.NoError(t, err)
	for want, c := range map[string]struct {
		p       *transforms.Pipeline
		content string
	}{
		`have it make one size, by RandomResizedCrop`:     {open, tensor.Image},
		`smaller than 5000x5000`:                          {tooLarge, tensor.Image},
		`uint8() of variable length, content utf-8; imag`: {fits, tensor.Text},
	} {
		src := newFiles([][]byte{photo(10, 10, 1)})
		src.specs[2].Content = c.content
		_, err := loader.New(src, loader.Options{BatchSize: 1, Transforms: map[string]loader.Transform{"t": loader.Images{Pipeline: c.p}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	// That some sizes do not suit is for the records to say; bytes that say nothing may be files.
	src := newFiles([][]byte{photo(10, 10, 1), photo(400, 300, 2)})
	src.specs[2].Content = ""
	ld := openWords(t, src, loader.Options{BatchSize: 2, OnError: loader.Backfill, Transforms: map[string]loader.Transform{"t": loader.Images{Pipeline: fits}}})
	for b, err := range ld.Epoch(t.Context(), 0) {
		if err != nil || fmt.Sprint(b.Mask(), b.Field("t").Shape()) != "[false true] (2, 300, 300, 3)" {
			t.Errorf("%v of %v, %v", b.Mask(), b.Field("t").Shape(), err)
		}
	}
}

// Photographs are trained from as they are: the dataset is that of
//
//	preprocess photos/ out/photos --keep-encoded
//
// or of a program's own, as here.
func ExampleImages_files() {
	dir, err := os.MkdirTemp("", "photos")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	files := store.NewRagged("images", tensor.Uint8)
	files.Content = tensor.Image
	schema := store.Schema{Fields: []store.Field{files, store.NewField("labels", tensor.Int64)}}
	path := filepath.Join(dir, "ds")
	w, err := flat.Create(path, schema, flat.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	record := store.NewRecord(schema)
	for i := range 20 {
		record.Values[0] = photo(300+10*i, 400-10*i, uint64(i)) // the bytes of a file
		if err := w.Append(record); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		log.Fatal(err)
	}

	ds, err := mmapds.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	p, err := transforms.Compose(
		transforms.RandomResizedCrop{Size: []int{224}},
		transforms.RandomHorizontalFlip{},
		transforms.ToLayout{Layout: transforms.CHW},
		transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}},
	)
	if err != nil {
		log.Fatal(err)
	}
	ld, err := loader.New(ds, loader.Options{
		BatchSize: 8, Sampler: sampler.Shuffle{}, OnError: loader.Backfill, // of a photo that cannot be decoded
		Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: p}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		x, y := tensor.As[float32](b.Field("images")), tensor.As[int64](b.Field("labels"))
		fmt.Println(b.Field("images").Shape(), len(x), len(y))
	}
	// Output:
	// (8, 3, 224, 224) 1204224 8
	// (8, 3, 224, 224) 1204224 8
	// (4, 3, 224, 224) 602112 4
}

// TestOrientedFiles turns images as their EXIF orientation says, where that is asked for.
func TestOrientedFiles(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(kinds, "orientation6.jpg"))
	require.NoError(t, err)
	p, err := transforms.Compose(transforms.Resize{Size: []int{8, 8}})
	require.NoError(t, err)
	pixels := func(orient bool) []byte {
		ld := openWords(t, newFiles([][]byte{data}), loader.Options{BatchSize: 1, Transforms: map[string]loader.Transform{"t": loader.Images{Pipeline: p, Orient: orient}}})
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			return slices.Clone(b.Field("t").Bytes())
		}
		return nil
	}
	d := imagefile.New(imagefile.Options{Orient: true})
	m, err := d.Open(data)
	require.NoError(t, err)
	want := make([]byte, 8*8*3)
	require.NoError(t, p.Runner().Do(want, m))
	if !bytes.Equal(pixels(true), want) || bytes.Equal(pixels(false), want) {
		t.Error("Orient makes no difference, or the wrong one")
	}
}

// TestLayoutOfTheSpec takes the layout of pixels from their Spec.
func TestLayoutOfTheSpec(t *testing.T) {
	p, err := transforms.Compose(transforms.ToLayout{Layout: transforms.CHW})
	require.NoError(t, err)
	in := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{3, 6, 7}, Layout: tensor.CHW}
	out, err := loader.Images{Pipeline: p}.Output(in)
	if err != nil || out.Layout != tensor.CHW || out.Shape.String() != "(3, 6, 7)" {
		t.Errorf("%+v, %v", out, err)
	}
	in.Layout, in.Shape = tensor.HWC, tensor.Shape{6, 7, 3}
	out, err = loader.Images{Pipeline: p, Layout: transforms.CHW}.Output(in)
	if err != nil || out.Layout != tensor.CHW || out.Shape.String() != "(3, 6, 7)" {
		t.Errorf("%+v, %v", out, err)
	}
}

var (
	corrupt       = flag.Int("corrupt", 400, "photos that TestManyCorruptFiles loads, half of them corrupt")
	corruptEpochs = flag.Int("corrupt-epochs", 5, "epochs in which it loads them")
)

// TestManyCorruptFiles loads photos with bits changed, bytes lost and ends cut off, for several
// epochs, under each kind of OnError: each that is too corrupt to decode is reported with its
// record, no batch is lost, and memory stays what it was.
func TestManyCorruptFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	kinds := kindsOfFiles(t)
	files := make([][]byte, *corrupt)
	for i := range files {
		f := slices.Clone(kinds[r.IntN(len(kinds))])
		switch i / 2 % 4 {
		case 0:
			f = f[:r.IntN(len(f))]
		case 1:
			at := r.IntN(len(f))
			f = slices.Delete(f, at, min(len(f), at+1+r.IntN(64)))
		default:
			for range 1 + r.IntN(20) {
				f[r.IntN(len(f))] ^= 1 << r.IntN(8)
			}
		}
		files[i] = f
	}
	whole := (len(files) + 1) / 2
	for i := range whole { // something for Backfill to draw
		files[2*i] = photo(40, 30, uint64(i))
	}
	src := newFiles(files)
	for _, onError := range []loader.OnError{loader.Backfill, loader.Blank, loader.Fail} {
		var mu sync.Mutex
		reported := make(map[int]int)
		ld := openWords(t, src, loader.Options{
			BatchSize: 16, Sampler: sampler.Shuffle{}, Workers: 2, OnError: onError,
			Transforms: map[string]loader.Transform{"t": loader.Images{Pipeline: training(t), MaxPixels: 1 << 20}},
			Report: func(e *loader.Error) {
				mu.Lock()
				defer mu.Unlock()
				reported[e.Record]++
			},
		})
		if onError == loader.Fail {
			if _, err := run(t.Context(), ld, ignore); err == nil {
				t.Error("Fail: no error")
			}
			continue
		}
		held := make([]uint64, *corruptEpochs)
		for epoch := range held {
			records, valid := 0, 0
			for b, err := range ld.Epoch(t.Context(), epoch) {
				require.NoError(t, err)
				records += b.Len()
				for _, ok := range b.Mask() {
					if ok {
						valid++
					}
				}
			}
			if records != len(files) || valid < whole || valid == records {
				t.Errorf("epoch %d: %d records, %d valid, of %d", epoch, records, valid, len(files))
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			held[epoch] = m.HeapAlloc
		}
		for record := range reported {
			if record%2 == 0 {
				t.Errorf("record %d is whole, and was reported", record)
			}
		}
		if grown := int64(held[len(held)-1]) - int64(held[1]); grown > 4<<20 {
			t.Errorf("%v: memory grew by %d bytes", onError, grown)
		}
		t.Logf("%v: %d of %d reported; heap by epoch %v", onError, len(reported), len(files), held)
	}
}

// TestRecordsOfSeveralFiles compares records of no image or several with a decoder and a Runner of one's own. The images
// of a record have the same random numbers.
func TestRecordsOfSeveralFiles(t *testing.T) {
	files, p := kindsOfFiles(t), training(t)
	r := rand.New(rand.NewPCG(3, 4))
	records, of := make([][]byte, 40), make([][][]byte, 40)
	for i := range records {
		for range r.IntN(6) {
			of[i] = append(of[i], files[r.IntN(len(files))])
			records[i] = tensor.AppendImage(records[i], of[i][len(of[i])-1])
		}
	}
	src := newFiles(records)
	src.specs[2].Content = tensor.Images
	images := loader.Options{BatchSize: 7, Seed: 7, Sampler: sampler.Shuffle{}, Fields: []string{"t"},
		Transforms: map[string]loader.Transform{"t": loader.Images{Pipeline: p}}}
	d, run := imagefile.New(imagefile.Options{}), p.Runner()
	want := make([]byte, 4*3*16*24)
	for _, images.Workers = range []int{loader.Synchronous, 3} {
		ld := openWords(t, src, images)
		for b, err := range ld.Epoch(t.Context(), 2) {
			require.NoError(t, err)
			rows, ends := b.Field("t"), b.Offsets("t")
			for i, record := range b.Indices() {
				if int(ends[i+1]-ends[i]) != len(of[record]) {
					t.Fatalf("record %d has %d images, not %d", record, ends[i+1]-ends[i], len(of[record]))
				}
				for k, file := range of[record] {
					m, err := d.Open(file)
					require.NoError(t, err)
					require.NoError(t, run.DoRand(want, m, transforms.NewRand(7, 2, uint64(record))))
					if at := int(ends[i]) + k; !bytes.Equal(rows.Bytes()[at*len(want):][:len(want)], want) {
						t.Fatalf("record %d, image %d differs", record, k)
					}
				}
			}
		}
	}
	for name, damage := range map[string]func([]byte) []byte{
		"image 1: an image file of 4294967295 bytes": func(b []byte) []byte { return append(b, 255, 255, 255, 255) },
		"image 1: 3 bytes where the length":          func(b []byte) []byte { return append(b, 0, 0, 0) },
		"image 1: ":                                  func(b []byte) []byte { return tensor.AppendImage(b, []byte("none")) },
	} {
		src := newFiles([][]byte{damage(tensor.AppendImage(nil, files[0]))})
		src.specs[2].Content = tensor.Images
		for _, err := range openWords(t, src, images).Epoch(t.Context(), 0) {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%v does not say %q", err, name)
			}
		}
	}
	images.Transforms["t"] = loader.PadImages{Images: loader.Images{Pipeline: p}}
	if _, err := loader.New(src, images); err == nil || !strings.Contains(err.Error(), "Resize to height and width") {
		t.Errorf("PadImages: %v", err)
	}
}
