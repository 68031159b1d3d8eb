package prepare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// slowBucket is a bucket in memory: it answers after a time, and refuses to write some keys.
type slowBucket struct {
	*membucket.Memory
	delay  time.Duration
	refuse string // keys that end so
	under  atomic.Int64
	most   atomic.Int64
	reads  atomic.Int64
	listed atomic.Int64 // objects
}

func (b *slowBucket) ListPage(ctx context.Context, prefix, delimiter string, token []byte) (remote.Page, error) {
	p, err := b.Memory.ListPage(ctx, prefix, delimiter, token)
	b.listed.Add(int64(len(p.Objects)))
	return p, err
}

func (b *slowBucket) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	now := b.under.Add(1)
	b.reads.Add(1)
	defer b.under.Add(-1)
	for most := b.most.Load(); now > most && !b.most.CompareAndSwap(most, now); most = b.most.Load() {
	}
	time.Sleep(b.delay)
	return b.Memory.ReadRange(ctx, key, off, n, etag)
}

func (b *slowBucket) NewWriter(ctx context.Context, key string, o remote.WriteOptions) (remote.Writer, error) {
	if b.refuse != "" && strings.HasSuffix(key, b.refuse) {
		return nil, remote.NewError("write", b.String()+"/"+key, remote.ErrPermission, nil)
	}
	return b.Memory.NewWriter(ctx, key, o)
}

func (*slowBucket) Close() error { return nil }

// useBucket makes every URL one of a bucket in memory, which holds the files of a folder.
func useBucket(t *testing.T, folder string) *slowBucket {
	t.Helper()
	b := &slowBucket{Memory: &membucket.Memory{Name: "s3://lab", Pages: 7}}
	useURLs(t, b)
	fillBucket(t, b, folder, filepath.Base(folder))
	return b
}

// useURLs makes every URL one of that bucket.
func useURLs(t *testing.T, b remote.Bucket) {
	t.Helper()
	old := upload.OpenURL
	t.Cleanup(func() { upload.OpenURL = old })
	upload.OpenURL = func(_ context.Context, text string) (remote.Bucket, *remote.URL, error) {
		u, err := remote.ParseURL(text)
		return b, u, err
	}
}

func fillBucket(t *testing.T, b remote.Bucket, folder, key string) {
	t.Helper()
	c := requests.NewClient(b, remote.Policy{})
	for name, data := range foldertest.Files(t, folder) {
		at := key
		if name != "." {
			at += "/" + filepath.ToSlash(name)
		}
		require.NoError(t, c.WriteAll(t.Context(), at, []byte(data), remote.WriteOptions{}))
	}
}

// fetchBucket copies what a bucket has below a key into a folder.
func fetchBucket(t *testing.T, b remote.Bucket, key string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	c := requests.NewClient(b, remote.Policy{})
	for _, name := range keysOf(t, b, key) {
		data, _, err := c.ReadAll(t.Context(), name, 1<<30)
		require.NoError(t, err)
		rawtest.Put(t, folder, name, data)
	}
	return folder
}

func keysOf(t *testing.T, b remote.Bucket, prefix string) (keys []string) {
	t.Helper()
	for o, err := range requests.NewClient(b, remote.Policy{}).List(t.Context(), prefix, "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

// urlOf returns a URL that has a secret among its options.
func urlOf(key string) string { return "s3://lab/" + key + "?region=us-east-1&awssecret=hush-hush" }

// From a bucket to a bucket, of several kinds of source, the dataset is the one that is made
// locally.
func TestBucketToBucket(t *testing.T) {
	table := raggedRows(t, 40)
	base := config(t, table)
	base.Images.Resize, base.Images.Crop, base.Skip, base.Dest = nil, nil, true, filepath.Join(t.TempDir(), "made")
	mustRun(t, base)
	sources, names := []string{manyPictures(t, 40), table, base.Dest}, []string{"ds"}
	base.Dest += ".h5"
	mustRun(t, base)
	sources, names = append(sources, base.Dest), append(names, "ds.h5", "ds.zarr")
	for _, source := range sources {
		for _, name := range names {
			key := filepath.Base(source)
			t.Run(key+" "+name, func(t *testing.T) { testBucketToBucket(t, source, key, name) })
		}
	}
}

func testBucketToBucket(t *testing.T, source, key, name string) {
	b := useBucket(t, source)
	c := config(t, source)
	c.Skip = true
	if key != "photos" {
		c.Images.Resize, c.Images.Crop = nil, nil
	}
	c.Dest = filepath.Join(t.TempDir(), name)
	mustRun(t, c)
	r := c
	r.Source, r.Dest, r.Spool = urlOf(key), urlOf("out/"+name), t.TempDir()
	s := mustRun(t, r)
	got := fetchBucket(t, b, "out/")
	checkSame(t, filepath.Join(got, "out", name), c.Dest)
	if s.Dest != "s3://lab/out/"+name || s.Source.Path != "s3://lab/"+key {
		t.Errorf("made %s from %s", s.Dest, s.Source.Path)
	}
	if left := foldertest.Files(t, r.Spool); len(left) > 0 {
		t.Errorf("left in the spool: %v", left)
	}
	if _, err := Run(t.Context(), r, &rawtest.Silent{}); !errors.Is(err, store.ErrExist) || strings.Contains(err.Error(), "hush") {
		t.Errorf("a second time: %v", err)
	}
	for name, data := range foldertest.Files(t, got) {
		if strings.Contains(data, "hush") {
			t.Errorf("%s has the secret in it", name)
		}
	}
}

// Images are read many at a time. The clock stands still while anything else can be done, so that
// no answer comes too early for that.
func TestBucketIsReadAhead(t *testing.T) {
	b := useBucket(t, rawtest.Folder(t, 60))
	b.delay = 5 * time.Millisecond
	c := config(t, urlOf("photos"))
	c.Workers = 1
	synctest.Test(t, func(t *testing.T) { mustRun(t, c) })
	if n := b.most.Load(); n < 16 {
		t.Errorf("no more than %d requests at a time", n)
	}
}

// A folder of many classes is listed once, and its folders are not looked at one by one.
func TestFolderIsListedOnce(t *testing.T) {
	source := t.TempDir()
	image := rawtest.Picture(t, "a.png", 8, 8, 1)
	for i := range 50 {
		rawtest.Put(t, source, fmt.Sprintf("photos/class%02d/a.png", i), image)
	}
	b := useBucket(t, filepath.Join(source, "photos"))
	c := config(t, urlOf("photos"))
	c.Images.KeepEncoded, c.Images.Resize, c.Images.Crop = true, nil, nil
	mustRun(t, c)
	if n := b.listed.Load(); n > 3*50 { // objects in answers
		t.Errorf("%d objects were listed", n)
	}
}

// A table that names images saves every rank the listing of them.
func TestTableSavesListings(t *testing.T) {
	source := rawtest.Folder(t, 60)
	table := "image,label\n"
	for _, class := range []string{"cat", "dog"} {
		entries, err := os.ReadDir(filepath.Join(source, class))
		require.NoError(t, err)
		for _, e := range entries {
			table += fmt.Sprintf("%s/%s,%s\n", class, e.Name(), class)
		}
	}
	rawtest.Put(t, source, "list.csv", []byte(table))
	c := config(t, filepath.Join(source, "list.csv"))
	c.Fields = "image:image,label:label"
	mustRun(t, c)
	b := useBucket(t, source)
	r := c
	r.Source, r.Dest = urlOf("photos/list.csv"), filepath.Join(t.TempDir(), "ds")
	for rank := range 3 {
		mustRun(t, r.rank(rank, 3))
	}
	mustMerge(t, r.Dest)
	checkSame(t, r.Dest, c.Dest)
	if n := b.listed.Load(); n > 0 {
		t.Errorf("%d objects were listed", n)
	}
}

// Ranks read from a bucket and write to it, and so does the merge.
func TestRanksInABucket(t *testing.T) {
	for _, name := range []string{"ds", "ds.zarr"} {
		t.Run(name, func(t *testing.T) { testRanksInABucket(t, name) })
	}
}

func testRanksInABucket(t *testing.T, name string) {
	source := manyPictures(t, 40)
	b := useBucket(t, source)
	c := config(t, source)
	c.Dest = filepath.Join(t.TempDir(), name)
	c.Skip, c.Dedup = true, true
	c.Split, _ = samples.ParseSplit("train=0.8,val=0.2")
	mustRun(t, c)
	r := c
	r.Source, r.Dest = urlOf("photos"), urlOf("out/"+name)
	var wg sync.WaitGroup
	for rank := range 3 {
		p := r.rank(rank, 3)
		p.Spool = t.TempDir()
		wg.Go(func() {
			if _, err := Run(context.Background(), p, &rawtest.Silent{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	before := keysOf(t, b, "out/")
	p := r.rank(1, 3)
	p.Spool = t.TempDir()
	if s := mustRun(t, p); len(s.Hints) == 0 || s.Part.Dest != "s3://lab/out/"+name {
		t.Errorf("a part was made again: %+v", s)
	}
	if !slices.Equal(keysOf(t, b, "out/"), before) {
		t.Error("a second run of a rank has changed something")
	}
	m := MergeConfig{Dest: r.Dest, Spool: t.TempDir(), RemoveParts: true}
	if _, err := Merge(t.Context(), m, &rawtest.Silent{}); err != nil {
		t.Fatal(err)
	}
	checkSame(t, filepath.Join(fetchBucket(t, b, "out/"), "out", name), c.Dest)
	if left := keysOf(t, b, "out/"+name+".parts"); len(left) > 0 {
		t.Errorf("parts are left: %v", left)
	}
	m = MergeConfig{Dest: r.Dest, Overwrite: true, Spool: t.TempDir()}
	if _, err := Merge(t.Context(), m, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "s3://lab/out/"+name+".parts: there is no such folder") {
		t.Errorf("a merge without parts: %v", err)
	}
}

// A run that cannot publish leaves no dataset that opens; the next one sends the spooled files,
// and removes objects that belong to no dataset.
func TestPublishedByTheManifest(t *testing.T) {
	for name, c := range map[string]struct{ last, stray string }{
		"ds": {layout.ManifestName, "images-00009.npy"}, "ds.zarr": {layout.ZarrManifest, "labels/c.9"},
	} {
		t.Run(name, func(t *testing.T) { testPublished(t, name, c.last, c.stray) })
	}
}

func testPublished(t *testing.T, name, last, stray string) {
	source := rawtest.Folder(t, 20)
	b := useBucket(t, source)
	b.refuse = last
	c := config(t, source)
	one := c
	one.Dest = filepath.Join(t.TempDir(), name)
	mustRun(t, one)
	c.Dest, c.Spool = urlOf(name), t.TempDir()
	_, err := Run(t.Context(), c, &rawtest.Silent{})
	if err == nil || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "--resume sends the rest") || strings.Contains(err.Error(), "hush") {
		t.Fatalf("error %v", err)
	}
	if keys := keysOf(t, b, name); len(keys) == 0 || slices.Contains(keys, name+"/"+last) {
		t.Errorf("objects %v", keys)
	}
	b.Put(name+"/"+stray, []byte("of a run before"))
	b.refuse = ""
	c.Resume = true
	mustRun(t, c)
	checkSame(t, filepath.Join(fetchBucket(t, b, name), name), one.Dest)
	if s := mustRun(t, c); len(s.Hints) == 0 || s.Hints[0] != completeHint {
		t.Errorf("once more: %v", s.Hints)
	}
}

// A dataset that takes the place of one with generations and tags has none of these.
func TestGenerationsAreReplaced(t *testing.T) {
	source := rawtest.Folder(t, 20)
	b := useBucket(t, source)
	c := config(t, source)
	c.Dest, c.Spool = urlOf("ds"), t.TempDir()
	for _, key := range []string{"ds/" + layout.ManifestName, "ds/" + layout.GenerationName(2), "ds/" + layout.Tags + "/best.json"} {
		b.Put(key, []byte("of a dataset before"))
	}
	c.Overwrite = true
	mustRun(t, c)
	one := config(t, source)
	one.Dest = filepath.Join(t.TempDir(), "ds")
	mustRun(t, one)
	checkSame(t, filepath.Join(fetchBucket(t, b, "ds"), "ds"), one.Dest)
}

// A dataset in Zarr takes the place of another one, and not of Zarr that penstock did not write.
func TestZarrReplaced(t *testing.T) {
	source := rawtest.Folder(t, 20)
	b := useBucket(t, source)
	c := config(t, source)
	c.Dest, c.Spool = urlOf("ds.zarr"), t.TempDir()
	b.Put("ds.zarr/zarr.json", []byte(`{"zarr_format": 3, "node_type": "group", "attributes": {"format": "other"}}`))
	c.Overwrite = true
	if _, err := Run(t.Context(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "Zarr that penstock did not write; choose another name") {
		t.Errorf("error %v", err)
	}
	b.Put("ds.zarr/zarr.json", []byte(`{"zarr_format": 3, "node_type": "group", "attributes": {"format": "penstock"}}`))
	for _, key := range []string{"ds.zarr/old/c.0.0", "ds.zarr/old/zarr.json", "ds.zarr/" + layout.ZarrManifest} {
		b.Put(key, []byte("of a dataset before"))
	}
	mustRun(t, c)
	one := config(t, source)
	one.Dest = filepath.Join(t.TempDir(), "ds.zarr")
	mustRun(t, one)
	checkSame(t, filepath.Join(fetchBucket(t, b, "ds.zarr"), "ds.zarr"), one.Dest)
}

// goneBucket is a missing bucket: stores report it for every object.
type goneBucket struct{ *membucket.Memory }

func (b goneBucket) ListPage(context.Context, string, string, []byte) (remote.Page, error) {
	return remote.Page{}, remote.NewError("list", b.String(), remote.ErrNoBucket, nil)
}

// Run reports a missing bucket before it makes anything.
func TestBucketNotThere(t *testing.T) {
	useURLs(t, goneBucket{&membucket.Memory{Name: "s3://lab"}})
	for _, c := range []Config{config(t, rawtest.Folder(t, 4)), config(t, urlOf("photos"))} {
		c.Spool = t.TempDir()
		if !remote.IsURL(c.Source) {
			c.Dest = urlOf("ds")
		}
		if _, err := Run(t.Context(), c, &rawtest.Silent{}); !errors.Is(err, remote.ErrNoBucket) {
			t.Errorf("%s to %s: %v", c.Source, c.Dest, err)
		}
		if left := foldertest.Files(t, c.Spool); len(left) > 0 {
			t.Errorf("in the spool: %v", left)
		}
	}
}

func TestURLsRefused(t *testing.T) {
	useBucket(t, rawtest.Folder(t, 4))
	for _, c := range []struct{ source, dest, says string }{
		{urlOf("photos"), urlOf("photos/out"), "are in one another"},
		{urlOf("photos"), urlOf(""), "are in one another"},
		{rawtest.Folder(t, 4), urlOf(""), "needs a name inside of its bucket"},
		{urlOf("nothing"), "out", "no such file or folder"},
		{"s3://lab/%zz?awssecret=hush", "out", "invalid"},
	} {
		k := config(t, c.source)
		k.Dest = c.dest
		if !remote.IsURL(c.dest) {
			k.Dest = filepath.Join(t.TempDir(), c.dest)
		}
		if _, err := Run(t.Context(), k, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s to %s: %v", c.source, c.dest, err)
		}
	}
	c := config(t, rawtest.Folder(t, 4))
	plain := c.Dest
	c.Source, c.Dest = "file://"+c.Source, "file://"+c.Dest
	mustRun(t, c)
	if rawtest.Manifest(t, plain).Records != 4 {
		t.Error("a file URL is not a path")
	}
}
