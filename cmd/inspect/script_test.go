package main

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/preprocess"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/tensor"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts' files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"inspect":    main,
		"preprocess": func() { cli.Main(preprocess.Command()) },
	})
}

// Every script finds in its folder:
//
//	flat         600 records of 3 classes in 2 shards: images uint8 CHW of 8 x 8, labels
//	normed       12 records: images float32 HWC of 4 x 4, normalized
//	basic.h5     chunks.h5   made by h5py, with groups, links and types of many kinds
//	ours.h5      as flat
func TestScripts(t *testing.T) {
	if h5test.Find() == "" {
		t.Log("no python3 that has h5py (apt-get install python3-h5py): what needs one is left out of the scripts")
	}
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "script"),
		Setup: setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"flip": flip, "cut": cut, "pngsize": pngSize, "python": python,
			"photos": photos, "samefiles": sameFiles,
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "h5py":
				return h5test.Find() != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		UpdateScripts: *update,
	})
}

func setup(env *testscript.Env) error {
	plain, err := flat.Create(filepath.Join(env.WorkDir, "flat"), animals(), flat.Options{ShardBytes: 1})
	if err != nil {
		return err
	}
	if err := write(plain, animals(), 600, store.Info{Recipe: recipe, Source: source, Skipped: skipped}); err != nil {
		return err
	}
	normed, err := flat.Create(filepath.Join(env.WorkDir, "normed"), normalized(), flat.Options{})
	if err != nil {
		return err
	}
	if err := write(normed, normalized(), 12, store.Info{}); err != nil {
		return err
	}
	ours, err := hdf5.Create(filepath.Join(env.WorkDir, "ours.h5"), animals(), hdf5.Options{Records: 600})
	if err != nil {
		return err
	}
	if err := write(ours, animals(), 600, store.Info{Recipe: recipe, Source: source}); err != nil {
		return err
	}
	for _, name := range []string{"basic", "chunks"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "internal", "hdf5", "meta", "testdata", "small-new-"+name+".h5"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(env.WorkDir, name+".h5"), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

var (
	recipe = &store.Recipe{
		Program: "penstock v0.1.0", Decoder: "built-in 1",
		Options:    map[string]string{"color": "rgb", "alpha": "dropped"},
		Transforms: []byte(`[{"op":"Resize","size":[8],"fit":"shorter","interpolation":"bilinear"},{"op":"ToLayout","layout":"chw"}]`),
	}
	source  = &store.SourceInfo{Kind: "imagefolder", Name: "zoo", Samples: 602, Bytes: 123456, Fingerprint: "sha256:00ff"}
	skipped = []store.Skipped{{Sample: "cat/x.jpg", Reason: "zero bytes"}, {Sample: "owl/y.jpg", Reason: "not an image"}}
)

func animals() store.Schema {
	images := store.NewField("images", tensor.Uint8, 3, 8, 8)
	images.Layout = tensor.CHW
	images.Normalization = &store.Normalization{Scale: 255, Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}}
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"cat", "dog", "owl"}
	return store.Schema{Fields: []store.Field{images, labels}}
}

func normalized() store.Schema {
	images := store.NewField("images", tensor.Float32, 4, 4, 3)
	images.Layout = tensor.HWC
	images.Normalization = &store.Normalization{Applied: true, Scale: 255, Mean: []float64{.5, .5, .5}, Std: []float64{.25, .25, .25}}
	return store.Schema{Fields: []store.Field{images}}
}

// write fills a dataset: byte k of the images of record i is i+k; records 0 to 99 are cats,
// 100 to 299 dogs, the rest owls. Floats stay zero.
func write(w store.Writer, schema store.Schema, n int, info store.Info) error {
	defer w.Close()
	for i := range n {
		r := store.NewRecord(schema)
		for f := range schema.Fields {
			switch {
			case schema.Fields[f].DType == tensor.Uint8:
				for k := range r.Values[f] {
					r.Values[f][k] = byte(i + k)
				}
			case schema.Fields[f].Name == "labels" && i >= 300:
				r.Values[f][0] = 2
			case schema.Fields[f].Name == "labels" && i >= 100:
				r.Values[f][0] = 1
			}
		}
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err := w.Commit(info)
	return err
}

// flip FILE OFFSET changes a bit of a byte.
func flip(ts *testscript.TestScript, _ bool, args []string) {
	change(ts, args, func(data []byte, at int) []byte {
		data[at] ^= 1
		return data
	})
}

// cut FILE LENGTH makes a file shorter.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	change(ts, args, func(data []byte, at int) []byte { return data[:at] })
}

func change(ts *testscript.TestScript, args []string, f func([]byte, int) []byte) {
	path := ts.MkAbs(args[0])
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	data, err := os.ReadFile(path)
	ts.Check(err)
	ts.Check(os.Chmod(path, 0o666))
	ts.Check(os.WriteFile(path, f(data, at), 0o666))
}

// pngsize FILE WxH fails unless the file is a PNG picture of that size.
func pngSize(ts *testscript.TestScript, _ bool, args []string) {
	img, err := png.Decode(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	ts.Check(err)
	if got := fmt.Sprintf("%dx%d", img.Bounds().Dx(), img.Bounds().Dy()); got != args[1] {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

// python FILE runs a script in a Python that has h5py and NumPy.
func python(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec(h5test.Find(), args...)
	if (err != nil) != neg {
		ts.Fatalf("python %v: %v", args, err)
	}
}

// photos DIR makes a folder of 12 images of two classes, all of 12 x 8 pixels.
func photos(ts *testscript.TestScript, _ bool, args []string) {
	for i := range 12 {
		dir := filepath.Join(ts.MkAbs(args[0]), []string{"day", "night"}[i%2])
		ts.Check(os.MkdirAll(dir, 0o777))
		img := image.NewRGBA(image.Rect(0, 0, 12, 8))
		for k := range img.Pix {
			img.Pix[k] = byte(k*k/7+20*i) | 3
		}
		for k := 3; k < len(img.Pix); k += 4 {
			img.Pix[k] = 255
		}
		var b bytes.Buffer
		ts.Check(png.Encode(&b, img))
		ts.Check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.png", i)), b.Bytes(), 0o666))
	}
}

// samefiles A B fails unless two folders have files of the same names and bytes.
func sameFiles(ts *testscript.TestScript, _ bool, args []string) {
	a, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := os.ReadDir(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(a) != len(b) || len(a) == 0 {
		ts.Fatalf("%s has %d files, %s has %d", args[0], len(a), args[1], len(b))
	}
	for _, e := range a {
		if ts.ReadFile(filepath.Join(args[0], e.Name())) != ts.ReadFile(filepath.Join(args[1], e.Name())) {
			ts.Fatalf("%s differs", e.Name())
		}
	}
}
