package prepare

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/block"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/hdf5/rewrite"
	"github.com/penstock/penstock/tensor"
)

// everyKind is a dataset of 8 records, 5 of them in one split and 3 in another, with a field of every kind.
func everyKind(t *testing.T) string {
	files := func(name, content string) store.Field {
		f := store.NewRagged(name, tensor.Uint8)
		f.Content = content
		return f
	}
	pixels := store.NewField("pixels", tensor.Uint8, 4, 3, 3)
	pixels.Layout, pixels.Normalization = tensor.HWC, &store.Normalization{Mean: []float64{.1, .2, .3}, Std: []float64{1, 2, 3}}
	boxes := store.NewRagged("boxes", tensor.Float32, 4)
	boxes.Content, boxes.Image, boxes.Instances = tensor.Boxes, "photo", "objects"
	areas := store.NewRagged("areas", tensor.Float64)
	areas.Instances = "objects"
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"cat", "dog"}
	grid := store.NewField("grid", tensor.BFloat16, 2, 3)
	grid.Dims = []string{"time", "lat", "lon"}
	mask := files("mask", tensor.Mask)
	mask.Image = "photo"
	schema := store.Schema{Fields: []store.Field{files("photo", tensor.Image), mask, pixels, boxes, areas, labels, grid,
		files("text", tensor.Text), store.NewField("flag", tensor.Bool), store.NewRagged("tokens", tensor.Uint16),
		files(layout.SourceNameField, tensor.SourceName)}}
	return datasettest.BuildFlat(t, schema, flat.Options{Splits: []string{"train", "val"}, ShardBytes: 600}, 8, store.Info{},
		func(i int, r *store.Record) {
			r.Split = []string{"train", "val"}[i/5]
			for k, f := range schema.Fields {
				size := f.RecordBytes()
				if f.Ragged {
					size *= []int{i % 3, i % 3, i + 1}[k%3]
				}
				if f.Instances != "" {
					size = f.RecordBytes() * i
				}
				v := bytes.Repeat([]byte{byte(i*16 + k)}, size)
				switch f.Name {
				case "photo":
					v = rawtest.Picture(t, []string{"a.jpg", "a.png"}[i%2], 20+i, 30, i)
				case "mask":
					var b bytes.Buffer
					require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 20+i, 30))))
					v = b.Bytes()
				case "labels":
					v = []byte{byte(i % 2), 0, 0, 0, 0, 0, 0, 0}
				case "text", layout.SourceNameField:
					v = fmt.Appendf(nil, "the %s of record %d.", f.Name, i)
				case "flag":
					v = []byte{byte(i % 2)}
				}
				r.Values[k] = v
			}
		})
}

// checkCopy compares the dataset at path with records of the one that is at of.
func checkCopy(t *testing.T, path, of string, records []int) {
	t.Helper()
	opened := func(path string) *mmapds.Dataset {
		var names []string
		m, err := store.ReadManifest(path)
		require.NoError(t, err)
		for _, f := range m.Fields {
			names = append(names, f.Name)
		}
		ds, err := mmapds.Open(path, mmapds.WithFields(names...))
		require.NoError(t, err)
		t.Cleanup(func() { ds.Close() })
		return ds
	}
	a, b := opened(of), opened(path)
	if !reflect.DeepEqual(a.Schema(), b.Schema()) {
		t.Fatalf("%s: fields\n%+v, want\n%+v", path, b.Schema(), a.Schema())
	}
	if b.Len() != len(records) || b.Manifest().Records != int64(len(records)) || b.Manifest().Deleted != nil {
		t.Fatalf("%s: %d records of %d that are stored, want %d", path, b.Len(), b.Manifest().Records, len(records))
	}
	if whole := a.Manifest(); len(records) == a.Len() && whole.ID != b.Manifest().ID ||
		len(records) == a.Len() && !reflect.DeepEqual(whole.Statistics, b.Manifest().Statistics) {
		t.Errorf("%s: another id or other statistics than %s", path, of)
	}
	split := func(m *store.Manifest, record int) string {
		at := slices.IndexFunc(m.Splits, func(s store.Split) bool {
			return slices.ContainsFunc(s.Ranges, func(r [2]int64) bool { return r[0] <= int64(record) && int64(record) < r[1] })
		})
		return m.Splits[at].Name
	}
	for k, record := range records {
		if is, was := split(b.Manifest(), k), split(a.Manifest(), record); is != was {
			t.Errorf("%s: record %d is in %s, want %s", path, k, is, was)
		}
		for _, f := range a.Schema().Fields {
			var x, y block.Block
			require.NoError(t, x.Read(t.Context(), a, f.Spec, []int{record}))
			require.NoError(t, y.Read(t.Context(), b, f.Spec, []int{k}))
			if !bytes.Equal(x.Value(0), y.Value(0)) {
				t.Errorf("%s: %s of record %d is %d bytes, of its original %d others", path, f.Name, k, len(y.Value(0)), len(x.Value(0)))
			}
		}
	}
}

// A dataset that preprocess makes of another one has its records as they are, files of images as files, and no byte of
// those that were deleted.
func TestCopy(t *testing.T) {
	original := everyKind(t)
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	copied := func(source, name string) string {
		c := DefaultConfig()
		c.Source, c.Dest = source, filepath.Join(t.TempDir(), name)
		mustRun(t, c)
		c.Resume = true // finds it complete
		mustRun(t, c)
		return c.Dest
	}
	for _, from := range []string{"flat", "ds.h5", "ds.zarr"} {
		source := copied(original, from)
		checkCopy(t, source, original, all)
		chosen, err := edit.At(source).Choose(0, []int64{1, 4, 6})
		if err == nil && from == "ds.h5" {
			_, err = rewrite.Delete(source, chosen, rewrite.Options{})
		} else if err == nil {
			_, err = edit.At(source).Delete(chosen, edit.Options{})
		}
		require.NoError(t, err)
		for _, to := range []string{"flat", "ds.h5", "ds.zarr"} {
			dest := copied(source, to)
			checkCopy(t, dest, original, []int{0, 2, 3, 5, 7})
			err := filepath.WalkDir(filepath.Dir(dest), func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				data, err := os.ReadFile(path)
				for _, i := range []int{1, 4, 6} {
					photo := rawtest.Picture(t, []string{"a.jpg", "a.png"}[i%2], 20+i, 30, i)
					if bytes.Contains(data, fmt.Appendf(nil, "of record %d.", i)) || bytes.Contains(data, photo[len(photo)-40:]) {
						t.Errorf("%s has values of record %d, which is deleted", path, i)
					}
				}
				return err
			})
			require.NoError(t, err)
		}
	}

	c := DefaultConfig() // pixels are asked for
	c.Source, c.Dest, c.Images.Resize, c.Fields = original, filepath.Join(t.TempDir(), "ds"), []int{8, 8}, "photo,labels"
	mustRun(t, c)
	if f := rawtest.Manifest(t, c.Dest).Fields[0]; f.Content != "" || !slices.Equal(f.Shape, []int{3, 8, 8}) {
		t.Errorf("photos of 8x8 pixels are %v", f.Spec)
	}

	c = DefaultConfig() // appended to files, and to pixels
	c.Source, c.Dest, c.Fields = original, filepath.Join(t.TempDir(), "ds"), "photo,labels"
	mustRun(t, c)
	c.Append = true
	mustRun(t, c)
	if m := rawtest.Manifest(t, c.Dest); m.Records != 16 || m.Fields[0].Content != tensor.Image {
		t.Errorf("%d records, photos are %v", m.Records, m.Fields[0].Spec)
	}
	c.Append, c.Dest, c.Images.Resize = false, filepath.Join(t.TempDir(), "ds"), []int{8, 8}
	mustRun(t, c)
	c.Append = true
	mustRun(t, c)
	if m := rawtest.Manifest(t, c.Dest); m.Records != 16 || m.Fields[0].Content != "" {
		t.Errorf("%d records, photos of 8x8 pixels are %v", m.Records, m.Fields[0].Spec)
	}

	c = DefaultConfig() // a part of each of two ranks, in an order of its own
	c.Source, c.Dest, c.Rank.Size, c.Shuffle = original, filepath.Join(t.TempDir(), "ds"), 2, Seed{true, 3}
	for c.Rank.Index = range 2 {
		mustRun(t, c)
	}
	mustMerge(t, c.Dest)
	shuffled := c
	shuffled.Rank, shuffled.Dest = Rank{}, filepath.Join(t.TempDir(), "ds")
	mustRun(t, shuffled)
	for _, dest := range []string{c.Dest, shuffled.Dest} {
		if f := rawtest.Manifest(t, dest).Fields[0]; f.Content != tensor.Image {
			t.Errorf("%s: photos are %v", dest, f.Spec)
		}
	}
}
