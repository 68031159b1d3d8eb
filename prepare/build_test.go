package prepare

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func plain(t testing.TB, source string) Config {
	c := DefaultConfig()
	c.Source, c.Dest = source, filepath.Join(t.TempDir(), "ds")
	return c
}

func numberAt(t testing.TB, d *store.Dataset, field int, i int64) int64 {
	t.Helper()
	e, _ := layout.Of(d).Column(field, layout.Whole).Extent(i)
	data, err := os.ReadFile(e.Path)
	require.NoError(t, err)
	return int64(binary.LittleEndian.Uint64(data[e.Offset+8*(i-e.First):]))
}

// A record stays in its split if other classes give its own another number, and so does a copy that is appended.
func TestSplitIsStableUnderClasses(t *testing.T) {
	config := func(classes string) Config { // 64 rows of each class
		text := "n,label\n"
		for i := range 64 * len(classes) {
			text += fmt.Sprintf("%d,%c\n", i/len(classes), classes[i%len(classes)])
		}
		dir := t.TempDir()
		rawtest.Put(t, dir, "rows.csv", []byte(text))
		c := plain(t, filepath.Join(dir, "rows.csv"))
		c.Split, _ = samples.ParseSplit("train=0.5,val=0.5")
		return c
	}
	sides := func(dest string) map[string]bool { // of class q
		d, err := store.OpenFlat(dest)
		require.NoError(t, err)
		found := make(map[string]bool)
		for _, s := range d.Manifest.Splits {
			for _, r := range s.Ranges {
				for i := r[0]; i < r[1]; i++ {
					if d.Schema.Fields[1].Classes[numberAt(t, d, 1, i)] == "q" {
						found[fmt.Sprint(numberAt(t, d, 0, i), s.Name)] = true
					}
				}
			}
		}
		return found
	}
	first, other, copies := config("pq"), config("apq"), config("q")
	mustRun(t, first)
	mustRun(t, other)
	want := sides(first.Dest)
	if got := sides(other.Dest); len(want) != 64 || !maps.Equal(got, want) {
		t.Errorf("next to another class: %v, want %v", got, want)
	}
	copies.Dest, copies.Append = first.Dest, true
	mustRun(t, copies)
	if got := sides(first.Dest); !maps.Equal(got, want) {
		t.Errorf("with copies: %v, want %v", got, want)
	}
}

func TestParseSplit(t *testing.T) {
	for text, want := range map[string]string{
		"train=0.9,val=0.1": "", "a=1": "", "a=0.5": "add up to 0.5", "a=0.5,a=0.5": "two splits", "a": "NAME=SHARE", "a=nan": "NAME=SHARE", "a=0,b=1": "NAME=SHARE",
	} {
		list, err := samples.ParseSplit(text)
		if want == "" && (err != nil || samples.SplitText(list) != text) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v", text, list, err)
		}
	}
}

// A source that can be read anywhere and one that cannot are shuffled, each record once.
func TestShuffle(t *testing.T) {
	csv := plain(t, rawtest.Rows(t, 500)) // from its beginning alone
	mustRun(t, csv)
	flat := plain(t, csv.Dest)
	for name, c := range map[string]Config{"csv": plain(t, csv.Source), "flat": flat} {
		t.Run(name, func(t *testing.T) {
			c.Shuffle = Seed{true, 7}
			mustRun(t, c)
			d, err := store.OpenFlat(c.Dest)
			require.NoError(t, err)
			var got []int64
			for i := range d.Records {
				got = append(got, numberAt(t, d, 0, i))
			}
			if slices.IsSorted(got) {
				t.Error("the order is that of the source")
			}
			slices.Sort(got)
			for i, n := range got {
				if n != int64(i*i) {
					t.Fatalf("record %d is %d", i, n)
				}
			}
			if m := rawtest.Manifest(t, c.Dest); m.Recipe.Options["shuffle"] != "7" || m.Source.Samples != 500 {
				t.Errorf("recipe %+v, source %+v", m.Recipe, m.Source)
			}
			entries, err := os.ReadDir(filepath.Dir(c.Dest))
			if err != nil || len(entries) != 1 {
				t.Errorf("left over: %v, %v", entries, err)
			}
		})
	}
}

// Appended records come after the old ones, and new classes get the next numbers.
func TestAppend(t *testing.T) {
	for _, name := range []string{"ds", "ds.h5", "ds.zarr"} {
		t.Run(name, func(t *testing.T) {
			first := config(t, rawtest.Folder(t, 10)) // cat, dog
			first.Dest = filepath.Join(filepath.Dir(first.Dest), name)
			mustRun(t, first)
			more := filepath.Join(t.TempDir(), "more")
			rawtest.Put(t, more, "ant/a.png", rawtest.Picture(t, ".png", 40, 30, 1))
			rawtest.Put(t, more, "dog/b.png", rawtest.Picture(t, ".png", 40, 30, 2))
			second := config(t, more)
			second.Dest, second.Append = first.Dest, true
			s := mustRun(t, second)
			m, err := openManifest(first.Dest)
			require.NoError(t, err)
			if s.Records != 12 || m.Generation != 2 || !slices.Equal(m.Fields[1].Classes, []string{"cat", "dog", "ant"}) {
				t.Errorf("%d records, generation %d, classes %q", s.Records, m.Generation, m.Fields[1].Classes)
			}
			if counts := m.Statistics["labels"].Labels; !slices.Equal(counts, []int64{5, 6, 1}) {
				t.Errorf("label counts %v", counts)
			}
		})
	}
}

func TestAppendRefusals(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	c.Append = true
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "nothing can be appended to it") {
		t.Errorf("error %v", err)
	}
	c.Append = false
	mustRun(t, c)
	before := foldertest.Files(t, c.Dest)
	c.Append, c.Images.Crop = true, []int{12}
	want := `these records cannot be appended to it: field "images" is uint8 (3, 16, 16) CHW, and not uint8 (3, 12, 12) CHW (how it was made: penstock inspect show --recipe)`
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if !maps.Equal(foldertest.Files(t, c.Dest), before) {
		t.Error("a refused append changed the dataset")
	}
}

func TestMaxErrors(t *testing.T) {
	source := rawtest.Folder(t, 20)
	for i := range 5 {
		rawtest.Put(t, source, fmt.Sprintf("dog/bad%d.png", i), []byte("words"))
	}
	for limit, fails := range map[string]bool{"4": true, "5": false, "10%": true, "20%": false} {
		c := config(t, source)
		c.Skip = true
		c.MaxErrors, _ = ParseLimit(limit)
		_, err := Run(context.Background(), c, &rawtest.Silent{})
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), "more than --max-errors "+limit) {
			t.Errorf("limit %s: %v", limit, err)
		}
	}
}

func TestSkippedList(t *testing.T) {
	source := rawtest.Folder(t, 6)
	rawtest.Put(t, source, "dog/x.png", []byte("words"))
	c := config(t, source)
	c.Skip = true
	mustRun(t, c)
	text, err := os.ReadFile(c.Dest + ".skipped.jsonl")
	if want := `{"sample":"dog/x.png","kind":"not an image","reason":"`; err != nil || !strings.HasPrefix(string(text), want) || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("%s, %v", text, err)
	}
	require.NoError(t, os.Remove(filepath.Join(source, "dog/x.png")))
	c.Overwrite = true
	mustRun(t, c)
	if _, err := os.Stat(c.Dest + ".skipped.jsonl"); err == nil {
		t.Error("the list of an earlier run is left, though nothing was skipped")
	}
}

// The result does not depend on the number of workers, whatever is asked for.
func TestSameBytesOfTables(t *testing.T) {
	source := rawtest.Rows(t, 2000)
	var first map[string]string
	for _, workers := range []int{1, 2, 7} {
		c := plain(t, source)
		c.Workers, c.Stratify.Wanted, c.Dedup, c.ShardBytes = workers, true, true, 8192
		c.Split, _ = samples.ParseSplit("a=0.5,b=0.5")
		mustRun(t, c)
		if got := foldertest.Files(t, c.Dest); first == nil {
			first = got
		} else if !maps.Equal(got, first) {
			t.Errorf("%d workers made other bytes than 1", workers)
		}
	}
}

// Encoded images are kept byte for byte, and can be decoded from there.
func TestKeepEncoded(t *testing.T) {
	source := rawtest.Folder(t, 6)
	rawtest.Put(t, source, "dog/x.png", rawtest.Picture(t, ".png", 30, 30, 1)[:100])
	c := config(t, source)
	c.Images.Resize, c.Images.Crop, c.Images.KeepEncoded, c.Skip = nil, nil, true, true
	s := mustRun(t, c)
	if f := rawtest.Manifest(t, c.Dest).Fields[0]; !f.Ragged || f.Content != tensor.Image || f.DType != tensor.Uint8 || len(s.Skipped) != 1 {
		t.Fatalf("field %+v, skipped %v", f, s.Skipped)
	}
	want, err := os.ReadFile(filepath.Join(source, "cat/a.png"))
	if got := rawtest.Payload(t, c.Dest, "images.values"); err != nil || !bytes.HasPrefix(got, want) {
		t.Error("the first image is not the first file")
	}
	direct, decoded := config(t, source), config(t, c.Dest)
	direct.Skip = true
	mustRun(t, direct)
	mustRun(t, decoded)
	if !bytes.Equal(rawtest.Payload(t, direct.Dest, "images"), rawtest.Payload(t, decoded.Dest, "images")) {
		t.Error("images decoded from the dataset differ from those of the files")
	}
}

// Pixels of a dataset go through the transforms of images.
func TestRetransform(t *testing.T) {
	source := filepath.Join(t.TempDir(), "photos")
	for i := range 4 {
		rawtest.Put(t, source, fmt.Sprintf("%d.png", i), rawtest.Picture(t, ".png", 40, 30, i))
	}
	whole := config(t, source)
	whole.Images.Resize, whole.Images.Crop = nil, nil
	mustRun(t, whole)
	for _, change := range []func(*Config){
		func(*Config) {},
		func(c *Config) { c.Images.Layout = tensor.HWC },
		func(c *Config) {
			c.Images.DType = tensor.Float32
			c.Images.Normalize, _ = field.ParseNormalize("imagenet")
		},
		func(c *Config) { c.Images.Normalize, _ = field.ParseNormalize("clip") },
	} {
		direct, again := config(t, source), config(t, whole.Dest)
		change(&direct)
		change(&again)
		mustRun(t, direct)
		mustRun(t, again)
		if !bytes.Equal(rawtest.Payload(t, direct.Dest, "images"), rawtest.Payload(t, again.Dest, "images")) {
			t.Error("pixels differ from those that come of the files")
		}
	}
}
