package chunk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

// conformAnswer describes a dataset as h5py reads it.
type conformAnswer struct {
	Shape   []int64 `json:"shape"`
	Sum     string  `json:"sha256"`
	Chunks  *string `json:"chunks"`  // sum of all stored bytes
	Refused bool    `json:"refused"` // what is not read here
}

// conformance writes the files of testdata/conform.py into a folder.
func conformance(t testing.TB) (dir string, answers map[string]map[string]conformAnswer) {
	t.Helper()
	dir = t.TempDir()
	t.Log(strings.TrimSpace(string(h5test.Run(t, "testdata/conform.py", dir))))
	require.NoError(t, json.Unmarshal(readFile(t, filepath.Join(dir, "answers.json")), &answers))
	return dir, answers
}

// Every dataset must have the bytes that h5py reads, in one piece, by records in any order,
// from a mapping and through an io.ReaderAt; every chunk must have the bytes that libhdf5
// stored.
func TestConformance(t *testing.T) {
	dir, answers := conformance(t)
	if len(answers) < 150 {
		t.Errorf("%d files, want at least 150", len(answers))
	}
	pool := NewPool(3)
	defer pool.Close()
	seen := map[string]bool{}
	for name, want := range answers {
		file := readFile(t, filepath.Join(dir, name))
		f := openBytes(t, file)
		n := 0
		for d := range f.All() {
			n++
			note(seen, d)
			if a, ok := want[d.Path]; ok {
				compare(t, name+d.Path, file, d, a, pool)
			}
		}
		if n != len(want) {
			t.Errorf("%s: %d datasets, want %d", name, n, len(want))
		}
	}
	for _, kind := range kinds {
		if !seen[kind] {
			t.Errorf("no %s among the files", kind)
		}
	}
	compareTrees(t, dir, answers, 8)
}

// kinds lists the kinds of files that the suite must have.
var kinds = []string{
	"compact", "contiguous", "chunked", "single chunk", "implicit", "fixed array", "extensible array", "B-tree v1",
	"B-tree v2",
	"deflate", "shuffle", "fletcher32", "lzf", "scaleoffset", "bool", "float16", "big-endian float32", "big-endian uint64",
	"string[5] ascii",
}

// The committed files have every filter that is undone here, and these numbers.
func TestCommittedFilters(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"testdata/small-plugins.h5", "testdata/small-bits.h5"} {
		file := readFile(t, name)
		for d := range openBytes(t, file).All() {
			note(seen, d)
			got := all(t, mapped(t, file, d.Path, Options{}))
			want := make([]byte, 0, len(got))
			for i := range 20 * 30 {
				x := i / 4 % 50
				want = append(want, byte(x), 0, 0, 0)[:len(want)+int(d.Type.Size)]
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s%s: %v: other numbers than were written", name, d.Path, d.Filters)
			}
		}
	}
	for _, kind := range []string{"bzip2", "lz4", "zstd", "bitshuffle", "blosc", "blosc2", "szip", "nbit"} {
		if !seen[kind] {
			t.Errorf("no %s among the files", kind)
		}
	}
}

func note(seen map[string]bool, d *meta.Dataset) {
	seen[d.Layout.Kind.String()], seen[d.Layout.Index.String()], seen[d.Type.String()] = true, true, true
	for _, f := range d.Filters {
		seen[f.Name] = true
	}
}

func compare(t *testing.T, name string, file []byte, d *meta.Dataset, want conformAnswer, pool *Pool) {
	t.Helper()
	r, err := NewMapped(file, d, Options{Pool: pool})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	got := all(t, r)
	if sum(got) != want.Sum {
		t.Errorf("%s: shape %v chunks %v filters %v: other bytes than h5py's", name, d.Dims, d.Layout.ChunkDims, d.Filters)
	}
	compareOrders(t, name, r, got)
	plain, err := NewReader(bytes.NewReader(file), d, Options{Pool: pool, CacheBytes: 1})
	require.NoError(t, err)
	compareOrders(t, name+" by ReaderAt", plain, got)
	if want.Chunks != nil && storedSum(t, file, d) != *want.Chunks {
		t.Errorf("%s: chunks are stored as other bytes than libhdf5 says", name)
	}
}

// compareOrders reads single records, runs and shuffled batches.
func compareOrders(t *testing.T, name string, r *Reader, want []byte) {
	t.Helper()
	size, n := r.RecordBytes(), int(r.Len())
	if n == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(1, 2))
	one := make([]byte, size)
	for i := range n {
		if err := r.Records(t.Context(), one, int64(i), int64(i)+1); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(one, want[i*size:(i+1)*size]) {
			t.Fatalf("%s: record %d alone has other bytes", name, i)
		}
	}
	for range 4 {
		batch := make([]int, 1+rng.IntN(n+3))
		for i := range batch {
			batch[i] = rng.IntN(n)
		}
		if rng.IntN(2) == 0 {
			slices.Sort(batch)
		}
		dst := make([]byte, len(batch)*size)
		if err := r.Gather(t.Context(), dst, batch); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, x := range batch {
			if !bytes.Equal(dst[i*size:(i+1)*size], want[x*size:(x+1)*size]) {
				t.Fatalf("%s: batch %v: record %d has other bytes", name, batch, x)
			}
		}
		a, b := rng.IntN(n+1), rng.IntN(n+1)
		a, b = min(a, b), max(a, b)
		run := make([]byte, (b-a)*size)
		if err := r.Records(t.Context(), run, int64(a), int64(b)); err != nil || !bytes.Equal(run, want[a*size:b*size]) {
			t.Fatalf("%s: records [%d, %d) have other bytes, error %v", name, a, b, err)
		}
	}
}

func storedSum(t *testing.T, file []byte, d *meta.Dataset) string {
	t.Helper()
	table, err := d.Chunks()
	require.NoError(t, err)
	h := sha256.New()
	for _, c := range table.Chunks {
		h.Write(file[c.Offset : c.Offset+c.Size])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// dumped is a line of "h5dump -n".
var dumped = regexp.MustCompile(`^ (group|dataset) +(/.*)$`)

// compareTrees compares groups and datasets of every n-th file with what h5dump lists.
func compareTrees(t *testing.T, dir string, answers map[string]map[string]conformAnswer, every int) {
	t.Helper()
	if _, err := exec.LookPath("h5dump"); err != nil {
		t.Log("h5dump is not installed: trees are compared with h5py's only")
		return
	}
	var names []string
	for name := range answers {
		names = append(names, name)
	}
	slices.Sort(names)
	compared := 0
	for i := 0; i < len(names); i += every {
		name := filepath.Join(dir, names[i])
		out, err := exec.Command("h5dump", "-n", name).Output()
		if err != nil {
			t.Logf("%s: h5dump cannot read it (%v): was it made by a newer libhdf5?", names[i], err)
			continue
		}
		compared++
		if want, got := dumpedTree(string(out)), treeOf(t, name); !slices.Equal(got, want) {
			t.Errorf("%s: objects %v, h5dump has %v", names[i], got, want)
		}
	}
	if compared < len(names)/every/2 {
		t.Errorf("%d trees compared, want at least half of %d", compared, len(names)/every)
	}
}

func dumpedTree(text string) (list []string) {
	for line := range strings.Lines(text) {
		if m := dumped.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && m[2] != "/" {
			list = append(list, m[1]+" "+m[2])
		}
	}
	slices.Sort(list)
	return list
}

func treeOf(t *testing.T, name string) (list []string) {
	t.Helper()
	for l := range openBytes(t, readFile(t, name)).Walk() {
		switch {
		case l.Group != nil:
			list = append(list, "group "+l.Path)
		case l.Dataset != nil:
			list = append(list, "dataset "+l.Path)
		}
	}
	slices.Sort(list)
	return list
}

// The files that h5py tests itself with are read, or refused for what they are.
func TestFilesOfH5py(t *testing.T) {
	const list = "import glob, os, h5py; print('\\n'.join(glob.glob(os.path.dirname(h5py.__file__) + '/**/data_files/*.h5', recursive=True)))"
	names := strings.Fields(string(h5test.Run(t, "-c", list)))
	if len(names) == 0 {
		t.Skip("this h5py came without its tests' data_files")
	}
	read := 0
	for _, name := range names {
		file := readFile(t, name)
		for l := range openBytes(t, file).Walk() {
			if l.Err != nil {
				t.Errorf("%s: %v", name, l.Err)
			}
			if l.Dataset == nil {
				continue
			}
			if r, err := NewMapped(file, l.Dataset, Options{}); err == nil {
				all(t, r)
				r.Close()
				read++
			} else {
				checkKind(t, err)
			}
		}
	}
	if read == 0 {
		t.Errorf("none of the datasets of %d files was read", len(names))
	}
}
