package prepare

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

var _ interface {
	loader.RaggedSource
	loader.ChunkedSource
	loader.DescribedSource
	loader.NamedSource
	loader.ClassedSource
	loader.Identifier
	loader.MappedSource
	loader.FaultSource
} = (*raw.Source)(nil)

// tarOf packs the files below a folder.
func tarOf(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "photos.tar")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := tar.NewWriter(f)
	require.NoError(t, errors.Join(w.AddFS(os.DirFS(folder)), w.Close(), f.Close()))
	return path
}

// rawSources writes sources of several kinds.
func rawSources(t *testing.T) map[string]string {
	photos := rawtest.Folder(t, 12)
	splits := t.TempDir()
	for i := range 12 {
		name := []string{"train", "val", "test"}[i%3] + "/" + []string{"cat", "dog"}[i/6] + fmt.Sprintf("/%d.png", i)
		rawtest.Put(t, splits, name, rawtest.Picture(t, name, 20+i, 30, i))
	}
	table := filepath.Join(filepath.Dir(photos), "photos.csv")
	rows := []string{"file,label,boxes"}
	err := fs.WalkDir(os.DirFS(filepath.Dir(photos)), "photos", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rows = append(rows, fmt.Sprintf(`%s,%s,"[[1,2,%d,9]]"`, path, filepath.Base(filepath.Dir(path)), 3+len(rows)))
		}
		return err
	})
	require.NoError(t, errors.Join(err, os.WriteFile(table, []byte(strings.Join(rows, "\n")), 0o666)))
	return map[string]string{"folder": photos, "splits": splits, "csv": rawtest.Rows(t, 40), "csv of images": table, "tar": tarOf(t, photos)}
}

// foreignSources returns sources that other programs wrote: the first of each N.
func foreignSources(t *testing.T, every int) map[string]string {
	all, err := filepath.Glob("source/kinds/testdata/*/*")
	if err != nil || len(all) < 300 {
		t.Fatal(len(all), err)
	}
	found := make(map[string]string)
	for i, path := range all {
		if i%every == 0 && !strings.HasSuffix(path, ".json") && raw.Is(path) {
			found[path] = path
		}
	}
	return found
}

// samplesOf is how many of the sources of other programs are tried.
var samplesOf = flag.Int("every", 5, "try one in `N` sources that other programs wrote")

// The records of a raw source are those of the dataset that preprocess --keep-encoded builds, in bulk and by number.
func TestOpenIsThePreparedDataset(t *testing.T) {
	sources := foreignSources(t, *samplesOf)
	maps.Copy(sources, rawSources(t))
	compared := 0
	for name, path := range sources {
		t.Run(name, func(t *testing.T) {
			c := plain(t, path)
			src, err := Open(t.Context(), path, OpenOptions{})
			if err == nil {
				defer src.Close()
				c.Images.KeepEncoded = slices.ContainsFunc(src.Specs(), func(s tensor.Spec) bool { return s.Content == tensor.Image })
			}
			if _, failed := Run(t.Context(), c, nil); failed != nil { // as it should, of many in testdata
				return
			}
			if err != nil {
				t.Fatal("preprocess reads it: ", err)
			}
			compared++
			ds, err := mmapds.Open(c.Dest)
			require.NoError(t, err)
			defer ds.Close()
			compare(t, src, ds)
			compareView(t, path, ds)
			for i := range src.Len() {
				want, err := ds.SourceName(t.Context(), i)
				got, failed := src.SourceName(t.Context(), i)
				if err != nil || failed != nil || want != "" && got != want {
					t.Errorf("record %d is of %q, want %q: %v, %v", i, got, want, failed, err)
				}
			}
		})
	}
	if compared < len(sources)/3 {
		t.Errorf("%d of %d sources were compared", compared, len(sources))
	}
}

// compareView compares a source as a view of it is read with the source's dataset.
func compareView(t *testing.T, path string, ds *mmapds.Dataset) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "all.view.json")
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	dataset, err := json.Marshal(path)
	require.NoError(t, err)
	text := fmt.Sprintf(`{"penstock": "view", "version": 1, "select": {"dataset": %s}, "ranges": [[0, %d]]}`, dataset, ds.Len())
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	viewed, err := Open(t.Context(), name, OpenOptions{})
	require.NoError(t, err)
	defer viewed.Close()
	compare(t, viewed, ds)
}

// compare compares all records of two Sources, in an order that is not theirs.
func compare(t *testing.T, got, want loader.RaggedSource) {
	t.Helper()
	if got.Len() != want.Len() || fmt.Sprint(got.Specs()) != fmt.Sprint(want.Specs()) {
		t.Fatalf("%d records of %v, want %d of %v", got.Len(), got.Specs(), want.Len(), want.Specs())
	}
	n := got.Len()
	indices := make([]int, n)
	for i := range indices {
		indices[i] = (7*i + 3) % n
	}
	if n%7 == 0 {
		slices.Reverse(indices)
	}
	for _, spec := range got.Specs() {
		a, b := values(t, got, spec, indices), values(t, want, spec, indices)
		if !bytes.Equal(a, b) {
			t.Errorf("field %q differs", spec.Name)
		}
	}
}

// values returns the offsets and bytes of records.
func values(t *testing.T, src loader.RaggedSource, spec tensor.Spec, indices []int) []byte {
	t.Helper()
	if !spec.Ragged {
		dst := make([]byte, len(indices)*spec.RecordBytes())
		require.NoError(t, src.Gather(t.Context(), spec.Name, indices, dst))
		return dst
	}
	offsets, lengths := make([]int64, len(indices)+1), make([]int64, len(indices)+1)
	rows, err := src.GatherRagged(t.Context(), spec.Name, indices, offsets, nil)
	require.NoError(t, errors.Join(err, src.Lengths(t.Context(), spec.Name, indices, lengths)))
	if !slices.Equal(offsets, lengths) {
		t.Errorf("field %q: offsets %v, lengths %v", spec.Name, offsets, lengths)
	}
	return fmt.Append(bytes.Clone(rows), offsets)
}

// batches returns the bytes of an epoch of shuffled batches, of images through a pipeline and of labels.
func batches(t *testing.T, src loader.Source, p *transforms.Pipeline) (all []byte) {
	t.Helper()
	ld, err := loader.New(src, loader.Options{BatchSize: 5, Sampler: sampler.Shuffle{}, Seed: 3, Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: p}}})
	require.NoError(t, err)
	defer ld.Close()
	for b, err := range ld.Epoch(t.Context(), 1) {
		require.NoError(t, err)
		all = append(append(all, b.Field("images").Bytes()...), fmt.Sprint(tensor.As[int64](b.Field("labels")))...)
	}
	return all
}

// A loader over files makes the batches of one over the dataset.
func TestBatchesOfFiles(t *testing.T) {
	path := rawtest.Folder(t, 33)
	src, err := Open(t.Context(), path, OpenOptions{})
	require.NoError(t, err)
	defer src.Close()
	c := plain(t, path)
	c.Images.KeepEncoded = true
	mustRun(t, c)
	ds, err := mmapds.Open(c.Dest)
	require.NoError(t, err)
	defer ds.Close()
	p, err := transforms.Compose(transforms.RandomResizedCrop{Size: []int{16}}, transforms.RandomHorizontalFlip{})
	require.NoError(t, err)
	if got, want := batches(t, src, p), batches(t, ds, p); len(want) == 0 || !bytes.Equal(got, want) {
		t.Error("the batches differ")
	}
	if !slices.Equal(src.Classes("labels"), []string{"cat", "dog"}) {
		t.Errorf("classes %q", src.Classes("labels"))
	}
}

// Splits are those of folders, or shares by names, which stay when files are added.
func TestSplitsOfFiles(t *testing.T) {
	open := func(path string, o OpenOptions) *raw.Source {
		t.Helper()
		src, err := Open(t.Context(), path, o)
		require.NoError(t, err)
		t.Cleanup(func() { src.Close() })
		return src
	}
	name := func(src *raw.Source, i int) string {
		s, err := src.SourceName(t.Context(), i)
		require.NoError(t, err)
		return s
	}
	folders := open(rawSources(t)["splits"], OpenOptions{Split: "val", Fields: []string{"labels"}})
	if folders.Len() != 4 || name(folders, 3) != "val/dog/7.png" || len(folders.Specs()) != 1 {
		t.Errorf("%d records, the last %s, of %v", folders.Len(), name(folders, 3), folders.Specs())
	}
	photos, seen := rawtest.Folder(t, 52), make(map[string]string)
	for _, split := range []string{"train", "val"} {
		src := open(photos, OpenOptions{Split: split, Shares: "train=0.7,val=0.3"})
		for i := range src.Len() {
			seen[name(src, i)] = split
		}
	}
	if len(seen) != 52 {
		t.Errorf("the splits have %d of 52 files", len(seen))
	}
	rawtest.Put(t, photos, "cat/0new.png", rawtest.Picture(t, ".png", 9, 9, 1))
	after := open(photos, OpenOptions{Split: "val", Shares: "train=0.7,val=0.3"})
	for i := range after.Len() {
		if n := name(after, i); n != "cat/0new.png" && seen[n] != "val" {
			t.Errorf("%s left its split", n)
		}
	}
	if a, b := open(photos, OpenOptions{}), after; a.ID() == b.ID() {
		t.Error("a split has the identity of all records")
	}
}

func TestOpenRefusals(t *testing.T) {
	photos := rawtest.Folder(t, 4)
	for want, o := range map[string]OpenOptions{
		`split "val": it has no splits`:                       {Split: "val"},
		`split "test": the splits are train, val`:             {Split: "test", Shares: "train=0.5,val=0.5"},
		`shares of splits: `:                                  {Shares: "train=0.5"},
		`there is no field "boxes"; the fields are images`:    {Fields: []string{"boxes"}},
		`--fields: a folder of images has no columns`:         {Columns: "a=b"},
		`unknown kind "lance"`:                                {From: "lance"},
		`--instances labels: the field is int64, and instanc`: {Instances: []string{"labels"}},
	} {
		src, err := Open(t.Context(), photos, o)
		if err == nil {
			src.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

// A file without an image is the error of its record, with its number and name; the others are read.
func TestBadFileOfAnOpenSource(t *testing.T) {
	photos := rawtest.Folder(t, 6)
	rawtest.Put(t, photos, "dog/x.png", []byte("words"))
	src, err := Open(t.Context(), photos, OpenOptions{})
	require.NoError(t, err)
	defer src.Close()
	var record loader.RecordError
	_, err = src.GatherRagged(t.Context(), "images", []int{0, 6}, make([]int64, 3), nil)
	if !errors.As(err, &record) || record.Record() != 6 || !strings.Contains(err.Error(), "record 6 (dog/x.png)") {
		t.Errorf("error %v", err)
	}
	require.NoError(t, os.Remove(filepath.Join(photos, "cat/a.png")))
	if _, err := src.GatherRagged(t.Context(), "images", []int{0}, make([]int64, 2), nil); err == nil || !strings.Contains(err.Error(), "cat/a.png") {
		t.Errorf("a file that was removed: %v", err)
	}
}

// Close waits for leases, and nothing is read after it.
func TestCloseOfAnOpenSource(t *testing.T) {
	src, err := Open(t.Context(), rawtest.Folder(t, 4), OpenOptions{})
	require.NoError(t, err)
	var wg sync.WaitGroup
	require.NoError(t, errors.Join(src.Retain(), src.Retain()))
	closed := make(chan struct{})
	wg.Go(func() {
		defer close(closed)
		src.Close()
	})
	for src.Retain() == nil { // until Close has begun
		src.Release()
	}
	src.Release()
	select {
	case <-closed:
		t.Error("Close did not wait for a lease")
	case <-time.After(20 * time.Millisecond):
	}
	src.Release()
	wg.Wait()
	if err := errors.Join(src.Close(), src.Close()); err != nil || !errors.Is(src.Retain(), raw.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestIsRaw(t *testing.T) {
	photos := rawtest.Folder(t, 4)
	c := plain(t, photos)
	c.Images.KeepEncoded = true
	mustRun(t, c)
	npy := filepath.Join(t.TempDir(), "a.npy")
	for path, want := range map[string]bool{
		photos: true, tarOf(t, photos): true, rawtest.Rows(t, 3): true, c.Dest: false, filepath.Join(c.Dest, "images-00000.npy"): false,
		"s3://lab/photos": false, npy: false, filepath.Join(photos, "none"): false,
	} {
		if raw.Is(path) != want || raw.Loads(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// At the end of the context, listing ends with its cause.
func TestOpenIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if _, err := Open(ctx, rawtest.Rows(t, 5000), OpenOptions{}); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

// A Source that uses a dataset has the same records, before and after, whole and of a split.
func TestUse(t *testing.T) {
	path := rawSources(t)["splits"]
	c := plain(t, path)
	c.Images.KeepEncoded = true
	mustRun(t, c)
	for _, o := range []OpenOptions{{}, {Split: "val"}, {Split: "b", Shares: "a=0.5,b=0.5"}, {Fields: []string{"labels"}}} {
		src, err := Open(t.Context(), path, o)
		require.NoError(t, err)
		indices := make([]int, src.Len())
		for i := range indices {
			indices[i] = src.Len() - 1 - i
		}
		var before [][]byte
		for _, spec := range src.Specs() {
			before = append(before, values(t, src, spec, indices))
		}
		ds, err := mmapds.Open(c.Dest, mmapds.WithFields(o.Fields...))
		if err == nil {
			err = src.Use(ds, nil, nil)
		}
		if err != nil || !src.InUse() {
			t.Fatal(err)
		}
		for i, spec := range src.Specs() {
			if !bytes.Equal(values(t, src, spec, indices), before[i]) {
				t.Errorf("%+v: field %q differs", o, spec.Name)
			}
		}
		v, err := src.Slice("labels", 0, src.Len())
		if err != nil || !bytes.Equal(v.Bytes(), values(t, src, src.Specs()[len(src.Specs())-1], slices.Sorted(slices.Values(indices)))) {
			t.Errorf("%+v: a slice of labels: %v", o, err)
		}
		require.NoError(t, src.Close())
		if _, err := ds.Slice("labels", 0, 1); !errors.Is(err, mmapds.ErrClosed) {
			t.Errorf("the dataset was not closed: %v", err)
		}
	}
}

// A dataset of other samples is not used.
func TestUseOfAnotherDataset(t *testing.T) {
	src, err := Open(t.Context(), rawtest.Folder(t, 6), OpenOptions{})
	require.NoError(t, err)
	defer src.Close()
	for want, other := range map[string]string{"has 8 records, and the source has 6": rawtest.Folder(t, 8), "has the fields": rawtest.Rows(t, 6)} {
		c := plain(t, other)
		c.Images.KeepEncoded = filepath.Ext(other) == ""
		mustRun(t, c)
		ds, err := mmapds.Open(c.Dest)
		require.NoError(t, err)
		if err := src.Use(ds, nil, nil); err == nil || !strings.Contains(err.Error(), want) || src.InUse() {
			t.Errorf("error %v, want %s", err, want)
		}
		ds.Close()
	}
}

// A fingerprint is that of the listing: it stays, and differs after any change.
func TestFingerprintOfFiles(t *testing.T) {
	print := func(path string) string {
		t.Helper()
		src, err := Open(t.Context(), path, OpenOptions{})
		require.NoError(t, err)
		defer src.Close()
		p, err := src.Fingerprint(t.Context())
		require.NoError(t, err)
		return p.Digest
	}
	sources := rawSources(t)
	first := filepath.Join(sources["folder"], "cat/a.png")
	change := func(path string) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(data, ' '), 0o666)
		}
		require.NoError(t, err)
	}
	for _, c := range []struct{ source, file string }{
		{sources["folder"], first}, {sources["csv of images"], first}, {sources["csv"], sources["csv"]}, {sources["tar"], ""},
	} {
		before := print(c.source)
		if print(c.source) != before {
			t.Errorf("%s: two fingerprints of one source", c.source)
		}
		if c.file == "" {
			continue
		}
		if change(c.file); print(c.source) == before {
			t.Errorf("%s: the fingerprint stayed when %s changed", c.source, c.file)
		}
		before = print(c.source)
		later := time.Now().Add(time.Hour)
		require.NoError(t, os.Chtimes(c.file, later, later))
		if print(c.source) == before {
			t.Errorf("%s: the fingerprint stayed when %s got another time", c.source, c.file)
		}
	}
	before := print(sources["folder"])
	require.NoError(t, os.Rename(first, filepath.Join(sources["folder"], "cat/0.png")))
	if print(sources["folder"]) == before {
		t.Error("the fingerprint stayed when a file was renamed")
	}
}

// Sources whose files may be anywhere have no fingerprint.
func TestFingerprintOfFilesIsUnknown(t *testing.T) {
	outside, err := Open(t.Context(), rawSources(t)["folder"], OpenOptions{Outside: true})
	require.NoError(t, err)
	defer outside.Close()
	if _, err := outside.Fingerprint(t.Context()); !errors.Is(err, raw.ErrUnknown) {
		t.Errorf("error %v", err)
	}
}

// Members of an archive that is not compressed are read from their places, and those of one that was written to since
// are an error.
func TestOpenArchiveByPlace(t *testing.T) {
	photos := rawtest.Folder(t, 12)
	path := tarOf(t, photos)
	src := openRaw(t, path, OpenOptions{})
	here := openRaw(t, photos, OpenOptions{})
	if !slices.EqualFunc(allValues(t, src), allValues(t, here), bytes.Equal) {
		t.Error("the archive has other records than the folder")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close()
	if _, err := f.Write(make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	if _, err := src.GatherRagged(t.Context(), "images", []int{3}, make([]int64, 2), nil); err == nil || !strings.Contains(err.Error(), "the archive was written to") {
		t.Errorf("error %v", err)
	}
}

// An archive that is larger than memory should hold is opened, and a table is refused with what to do. The files have
// holes, and take no space.
func TestOpenLargeFiles(t *testing.T) {
	const hole = 600 << 20
	picture := rawtest.Picture(t, ".png", 20, 20, 1)
	path := filepath.Join(t.TempDir(), "large.tar")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	at := int64(0)
	for i, size := range []int64{int64(len(picture)), hole, hole} {
		var header bytes.Buffer
		h := &tar.Header{Name: fmt.Sprintf("cat/%d.png", i), Size: size, Mode: 0o600, Typeflag: tar.TypeReg}
		require.NoError(t, tar.NewWriter(&header).WriteHeader(h))
		_, err := f.WriteAt(header.Bytes(), at)
		if err == nil && i == 0 {
			_, err = f.WriteAt(picture, at+512)
		}
		require.NoError(t, err)
		at += 512 + (size+511)/512*512
	}
	require.NoError(t, f.Truncate(at+1024))
	src := openRaw(t, path, OpenOptions{})
	got, err := src.GatherRagged(t.Context(), "images", []int{0}, make([]int64, 2), nil)
	if err != nil || src.Len() != 3 || !bytes.Equal(got, picture) {
		t.Errorf("%d records, %v", src.Len(), err)
	}
	table := rawtest.Rows(t, 40)
	require.NoError(t, os.Truncate(table, 2*hole))
	if _, err := Open(t.Context(), table, OpenOptions{}); err == nil || !strings.Contains(err.Error(), "penstock preprocess "+table) {
		t.Errorf("error %v", err)
	}
}
