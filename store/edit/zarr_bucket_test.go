package edit

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
)

// makeZarrBucket returns a bucket with Zarr of pages and labels.
func makeZarrBucket(t testing.TB) *membucket.Memory {
	t.Helper()
	return makeBucketOf(t, containers[1])
}

// Whichever of the objects that each generation replaces a killed writer has left behind, every generation is whole, and
// the next change, or Prune, replaces them.
func TestZarrRootBehind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("mirrors of buckets need Linux")
	}
	replaced := []string{layout.ZarrNode, "penstock/manifest/zarr.json", layout.ZarrManifest}
	for left := range 1 << len(replaced) {
		b := makeZarrBucket(t)
		d := InBucket(t.Context(), b, "ds", t.TempDir())
		if _, err := d.AddColumn(emb, valuesOf(emb, 1), Options{}); err != nil {
			t.Fatal(err)
		}
		old := objectsOf(t, b)
		if _, err := d.SetColumn(emb, valuesOf(emb, 2), Options{}); err != nil {
			t.Fatal(err)
		}
		for i, name := range replaced {
			if left>>i&1 == 1 {
				b.Put("ds/"+name, old[name])
			}
		}
		for n, version := range map[int]int{1: 0, 2: 1, 3: 2} {
			checkColumn(t, b, n, version)
		}
		repair := func() error {
			_, err := d.Prune(PruneOptions{Last: 9})
			return err
		}
		if left%2 == 1 {
			repair = func() error { return second(d.RenameColumn("labels", "class", Options{})) }
		}
		require.NoError(t, repair())
		checkRoot(t, b, d)
	}
}

// checkColumn compares the column emb of a generation, in a mirror of its own, with that of a version; 0 is none.
func checkColumn(t *testing.T, b *membucket.Memory, generation, version int) {
	t.Helper()
	ds, err := mirror.Open(t.Context(), lent{b}, fmt.Sprintf("ds@%d", generation),
		mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	require.NoError(t, err)
	defer ds.Close()
	if i := ds.Manifest().Schema().Index("emb"); i < 0 != (version == 0) {
		t.Fatalf("generation %d: column %d", generation, i)
	}
	got := make([]byte, emb.RecordBytes())
	for i := range records * min(version, 1) {
		if err := ds.Gather(t.Context(), "emb", []int{i}, got); err != nil || string(got) != string(value(emb, version, i)) {
			t.Fatalf("generation %d, record %d: %v, %v", generation, i, got, err)
		}
	}
}

// Metadata of an array that is corrupt is found, before a generation is made with it.
func TestZarrNodeCorrupt(t *testing.T) {
	b := makeZarrBucket(t)
	b.Put("ds/labels/zarr.json", append(objectsOf(t, b)["labels/zarr.json"], ' '))
	before := keys(t, b)
	_, err := InBucket(t.Context(), b, "ds", t.TempDir()).RenameColumn("labels", "class", Options{})
	if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "labels/zarr.json: its CRC32C is") {
		t.Error(err)
	}
	if now := keys(t, b); !slices.Equal(now, before) {
		t.Errorf("%q", now)
	}
}

// The arrays of a column are removed all at a time, and only when all of them are old.
func TestPruneKeepsYoungArrays(t *testing.T) {
	b := makeZarrBucket(t)
	d := InBucket(t.Context(), b, "ds", t.TempDir())
	day, now := 24*time.Hour, time.Now()
	put := func(age time.Duration, names ...string) {
		b.Now = func() time.Time { return now.Add(-age) }
		for _, name := range names {
			b.Put("ds/"+name, []byte("of a column that is being written"))
		}
	}
	put(2*day, "emb.01234567/c.0.0", "penstock/crc/emb.01234567/c.0", "words.76543210/values/c.0",
		"penstock/crc/words.76543210.values/c.0", "penstock/crc/words.76543210.offsets/c.0", "mine/notes.txt")
	put(0, "emb.01234567/c.1.0")
	for _, dry := range []bool{true, false} {
		if p, err := d.Prune(PruneOptions{Within: day, DryRun: dry}); err != nil || p.Files != 3 || len(p.Generations) > 0 {
			t.Errorf("%+v, %v", p, err)
		}
	}
	there := strings.Join(keys(t, b), " ")
	if strings.Contains(there, "words") || strings.Count(there, "emb.01234567") != 3 || !strings.Contains(there, "mine/notes.txt") {
		t.Errorf("%q", there)
	}
}

// Records are not appended to Zarr in a bucket, and nothing is left of a try.
func TestZarrIsNotAppendedTo(t *testing.T) {
	b := makeZarrBucket(t)
	before := keys(t, b)
	_, err := appendRows(InBucket(t.Context(), b, "ds", t.TempDir()), 3)
	if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "preprocess mem://memory/ds mem://memory/ds-flat") {
		t.Error(err)
	}
	if now := keys(t, b); !slices.Equal(now, before) {
		t.Errorf("%q is left", now)
	}
}

// zarr-python reads the newest generation, by the lines that docs/changing.md has.
func TestZarrPythonInABucket(t *testing.T) {
	b := makeZarrBucket(t)
	d := InBucket(t.Context(), b, "ds", t.TempDir())
	for _, err := range []error{
		second(d.AddColumn(emb, valuesOf(emb, 1), Options{})), second(d.AddColumn(tokens, valuesOf(tokens, 1), Options{})),
		second(d.SetColumn(emb, valuesOf(emb, 2), Options{})), second(d.RenameColumn("labels", "class", Options{})),
		second(d.DropColumn([]string{"pages"}, Options{})),
	} {
		require.NoError(t, err)
	}
	folder, files := filepath.Join(t.TempDir(), "ds"), make(map[string]string)
	for name, data := range objectsOf(t, b) {
		files[name] = string(data)
	}
	foldertest.Write(t, folder, files)
	out := pythontest.Run(t, "import zarr", "-c", `import sys, zarr
ds = zarr.open(sys.argv[1], mode="r")
arrays = ds.attrs["arrays"]
shown = sorted(k for k in ds if k != "penstock")
assert shown == sorted(arrays.values()), (shown, arrays)
emb, words = ds[arrays["emb"]], ds[arrays["tokens"]]
print(sorted(arrays), emb.shape, ds[arrays["class"]].shape, words["offsets"].shape)
sys.stdout.flush()
sys.stdout.buffer.write(emb[:].tobytes())`, folder)
	want := fmt.Sprintf("['class', 'emb', 'tokens'] (%d, 3) (%d,) (%d,)\n", records, records, records+1)
	for i := range records {
		want += string(value(emb, 2, i))
	}
	if string(out) != want {
		t.Errorf("%.200q, want %.200q", out, want)
	}
}
