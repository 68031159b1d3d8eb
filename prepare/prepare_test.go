package prepare

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func TestFlat(t *testing.T) {
	c := config(t, rawtest.Folder(t, 10))
	s := mustRun(t, c)
	m := rawtest.Manifest(t, c.Dest)
	if m.Records != 10 || s.Records != 10 || s.ID != m.ID || s.Bytes < 10*16*16*3 {
		t.Errorf("manifest of %d records, summary %+v", m.Records, s)
	}
	if f := m.Fields[0]; f.Name != "images" || f.Shape.String() != "(3, 16, 16)" || f.Layout != tensor.CHW || f.Normalization != nil {
		t.Errorf("field %+v", f)
	}
	if f := m.Fields[1]; f.Name != "labels" || len(f.Shape) != 0 || !slices.Equal(f.Classes, []string{"cat", "dog"}) {
		t.Errorf("field %+v", f)
	}
	labels := rawtest.Payload(t, c.Dest, "labels")
	for i := range 10 {
		if got, want := binary.LittleEndian.Uint64(labels[8*i:]), uint64(i/5); got != want {
			t.Errorf("label %d is %d, want %d", i, got, want)
		}
	}
	if m.Source.Samples != 10 || m.Source.Name != "photos" || m.Source.Kind != "imagefolder" || len(m.Source.Fingerprint) != 7+64 {
		t.Errorf("source %+v", m.Source)
	}
	if !strings.Contains(string(m.Recipe.Transforms), `"CenterCrop"`) || m.Recipe.Options["alpha"] != "dropped" {
		t.Errorf("recipe %+v", m.Recipe)
	}
}

// Any number of workers makes the same bytes, also where samples are skipped.
func TestSameBytesForAnyWorkers(t *testing.T) {
	source := rawtest.Folder(t, 60)
	rawtest.Put(t, source, "cat/bad.jpg", []byte("words"))
	rawtest.Put(t, source, "dog/bad.png", rawtest.Picture(t, ".png", 40, 30, 1)[:200])
	names := []string{"ds"}
	names = append(names, "ds.h5", "ds.zarr")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			var first map[string]string
			for _, workers := range []int{1, 2, 8} {
				c := config(t, source)
				c.Dest, c.Workers, c.Skip = filepath.Join(filepath.Dir(c.Dest), name), workers, true
				mustRun(t, c)
				got := foldertest.Files(t, c.Dest)
				if first == nil {
					first = got
				}
				if !maps.Equal(got, first) {
					t.Errorf("%d workers made other bytes than 1", workers)
				}
			}
		})
	}
}

func TestUnlabelled(t *testing.T) {
	source := filepath.Join(t.TempDir(), "scans")
	rawtest.Put(t, source, "a.png", rawtest.Picture(t, ".png", 40, 30, 1))
	c := config(t, source)
	c.Images.Color, c.Images.Layout = "gray", tensor.HWC
	s := mustRun(t, c)
	m := rawtest.Manifest(t, c.Dest)
	if len(m.Fields) != 2 || layout.SourceNames(m.Schema().Specs()) != 1 || m.Fields[0].Shape.String() != "(16, 16, 1)" || s.Classes != nil {
		t.Errorf("fields %+v, classes %v", m.Fields, s.Classes)
	}
}

// Stored floats are (x/255-mean)/std of the bytes that are stored without, and the manifest
// says so.
func TestFloats(t *testing.T) {
	source := rawtest.Folder(t, 6)
	plain := config(t, source)
	mustRun(t, plain)
	pixels := rawtest.Payload(t, plain.Dest, "images")
	imagenet := field.Presets["imagenet"]
	for _, norm := range []string{"none", "imagenet", "0.5/0.25"} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			t.Run(fmt.Sprintf("%v %s", dtype, norm), func(t *testing.T) {
				c := config(t, source)
				c.Images.DType = dtype
				c.Images.Normalize, _ = field.ParseNormalize(norm)
				mustRun(t, c)
				n := rawtest.Manifest(t, c.Dest).Fields[0].Normalization
				if n == nil || !n.Applied || n.Scale != 255 || len(n.Mean) != 3 {
					t.Fatalf("normalization %+v", n)
				}
				if norm == "imagenet" && !slices.Equal(n.Std, imagenet.Std) || norm == "none" && n.Std[0] != 1 {
					t.Errorf("normalization %+v", n)
				}
				compareFloats(t, dtype, rawtest.Payload(t, c.Dest, "images"), pixels, n)
			})
		}
	}
}

// compareFloats compares stored numbers with the formula: within 1e-6 for float32, half a
// unit in the last place for the short types.
func compareFloats(t *testing.T, dtype tensor.DType, got, pixels []byte, n *store.Normalization) {
	t.Helper()
	for i, x := range pixels {
		ch := i / 256 % 3
		want := (float64(x)/255 - n.Mean[ch]) / n.Std[ch]
		var v, tolerance float64
		switch dtype {
		case tensor.Float32:
			v, tolerance = float64(math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:]))), 1e-6
		case tensor.Float16:
			v, tolerance = float64(tensor.Half(binary.LittleEndian.Uint16(got[2*i:])).Float32()), 1e-6+math.Abs(want)/2048
		default:
			v, tolerance = float64(tensor.Brain(binary.LittleEndian.Uint16(got[2*i:])).Float32()), 1e-6+math.Abs(want)/256
		}
		if math.Abs(v-want) > tolerance {
			t.Fatalf("value %d is %v, want %v", i, v, want)
		}
	}
}

// --normalize dataset computes the same statistics whether they are applied or stored.
func TestNormalizeDataset(t *testing.T) {
	source := rawtest.Folder(t, 8)
	rawtest.Put(t, source, "dog/zzz.jpg", []byte("words")) // left out of the statistics too
	noted, applied := config(t, source), config(t, source)
	noted.Skip, applied.Skip = true, true
	applied.Images.DType = tensor.Float32
	noted.Images.Normalize, _ = field.ParseNormalize("dataset")
	applied.Images.Normalize = noted.Images.Normalize
	mustRun(t, noted)
	if s := mustRun(t, applied); len(s.Skipped) != 1 {
		t.Errorf("skipped %v", s.Skipped)
	}
	a, b := rawtest.Manifest(t, noted.Dest).Fields[0].Normalization, rawtest.Manifest(t, applied.Dest).Fields[0].Normalization
	if a == nil || b == nil || a.Applied || !b.Applied || !slices.Equal(a.Mean, b.Mean) || !slices.Equal(a.Std, b.Std) {
		t.Fatalf("noted %+v, applied %+v", a, b)
	}
	for i, ch := range rawtest.Manifest(t, applied.Dest).Statistics["images"].Channels {
		if math.Abs(ch.Mean) > 1e-5 || math.Abs(ch.Std-1) > 1e-5 {
			t.Errorf("channel %d has mean %v and deviation %v, want 0 and 1", i, ch.Mean, ch.Std)
		}
	}
}

// The fingerprint of rows in blocks, and of the same rows one by one, is that of docs/format.md.
func TestFingerprintOfBlocks(t *testing.T) {
	dir := t.TempDir()
	rawtest.Put(t, dir, "t.csv", []byte("a,b\n1,x\n\n-2,why\nbad,\n3,z\n"))
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	var words []byte
	for _, s := range []struct {
		name string
		data []byte
	}{
		{"t.csv:2", []byte("\x01\x00\x00\x00\x00\x00\x00\x00x")},
		{"t.csv:4", []byte("\xfe\xff\xff\xff\xff\xff\xff\xffwhy")},
		{"t.csv:5", nil},
		{"t.csv:6", []byte("\x03\x00\x00\x00\x00\x00\x00\x00z")},
	} {
		b := binary.LittleEndian.AppendUint64(append([]byte(s.name), 0), uint64(len(s.data)))
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(s.data, castagnoli))
		words = binary.LittleEndian.AppendUint32(words, crc32.Checksum(b, castagnoli))
	}
	want := fmt.Sprintf("sha256:%x", sha256.Sum256(words))
	for name, change := range map[string]func(*Config){
		"blocks": func(*Config) {}, "one by one": func(c *Config) { c.Dedup = true },
	} {
		c := DefaultConfig()
		c.Source, c.Dest = filepath.Join(dir, "t.csv"), filepath.Join(t.TempDir(), "ds")
		c.Fields, c.Skip = "a:int64,b:text", true
		change(&c)
		mustRun(t, c)
		if got := rawtest.Manifest(t, c.Dest).Source.Fingerprint; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestOverwriteKeepsTheOldUntilTheNewIsWhole(t *testing.T) {
	source := rawtest.Folder(t, 6)
	c := config(t, source)
	mustRun(t, c)
	before := foldertest.Files(t, c.Dest)
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); !errors.Is(err, store.ErrExist) || !strings.Contains(err.Error(), "--overwrite") {
		t.Errorf("error %v, want store.ErrExist and a word on --overwrite", err)
	}
	c.Overwrite = true
	rawtest.Put(t, source, "dog/zzz.jpg", []byte("words"))
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil {
		t.Error("a bad sample is not an error")
	}
	if !maps.Equal(foldertest.Files(t, c.Dest), before) {
		t.Error("a run that failed changed the dataset")
	}
	c.Skip = true
	mustRun(t, c)
	if maps.Equal(foldertest.Files(t, c.Dest), before) {
		t.Error("a run that was done did not change the dataset")
	}
}

func BenchmarkPass(b *testing.B) {
	c := config(b, rawtest.Folder(b, 100))
	c.Overwrite = true
	for b.Loop() {
		mustRun(b, c)
	}
	b.ReportMetric(float64(b.N)*100/b.Elapsed().Seconds(), "images/s")
}
