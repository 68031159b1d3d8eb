package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// unitSources are the sources of testdata/units and ways to read them.
var unitSources = []struct {
	name string
	opts source.Options
}{
	{"demos.h5", source.Options{}},
	{"demos.h5", source.Options{Records: "data/*[:]", Fields: "actions,obs/x,@n,@task,episode,step"}},
	{"demos.h5", source.Options{Records: "data/*", Split: "mask/train"}},
	{"samples.h5", source.Options{}},
	{"dense.h5", source.Options{Records: "all/*[:]"}},
	{"cells.h5ad", source.Options{}},
	{"cells.h5ad", source.Options{Fields: "X,layers/counts,obs/_index,obs/type,obs/n"}},
	{"tenx.h5", source.Options{}},
	{"turns.json", source.Options{}},
	{"flat.json", source.Options{}},
	{"hive", source.Options{}},
	{"hive-csv", source.Options{}},
	{"lerobot", source.Options{}},
	{"npz", source.Options{Records: "*[:]"}},
	{"npy", source.Options{Records: "*"}},
	{"safetensors", source.Options{}},
	{"h5", source.Options{Records: "*[:]"}},
	{"groups.zarr", source.Options{Records: "data/*[:]", Fields: "x,label,@n,episode"}},
	{"groups.zarr", source.Options{Records: "data/*"}},
}

// A source with units whose bytes were changed anywhere is refused by an error that names it, or it is read to its end,
// in order and at random, with values of the promised sizes, in bounded memory and time.
func TestUnitMutations(t *testing.T) {
	for k, s := range unitSources {
		t.Run(s.name+" "+s.opts.Records+s.opts.Fields, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(11, uint64(k)))
			dir := filepath.Join(t.TempDir(), "changed")
			good := filepath.Join("testdata/units", s.name)
			require.NoError(t, readEverything(t, good, s.opts))
			refused := 0
			for i := range *mutations / 10 {
				path, size := mutated(t, rng, good, dir)
				var err error
				what := bounds(64<<20+200*size, func() string { err = readEverything(t, path, s.opts); return broken(err) })
				switch {
				case what != "":
					kept := filepath.Join(os.TempDir(), "units", s.name+"-"+string(rune('a'+i%26)))
					t.Errorf("mutation %d: %s; see %s: %v", i, what, kept, os.CopyFS(kept, os.DirFS(dir)))
				case err != nil && !strings.Contains(err.Error(), path):
					t.Errorf("mutation %d: the error does not name %s: %v", i, path, err)
				case err != nil:
					refused++
				}
				require.NoError(t, os.RemoveAll(dir))
			}
			if refused == 0 {
				t.Error("none was refused")
			}
		})
	}
}

// errBroken is the error of a source that does not keep its promises.
var errBroken = errors.New("broken promise")

func broken(err error) string {
	if errors.Is(err, errBroken) {
		return err.Error()
	}
	return ""
}

// mostSamples is how many samples readEverything reads in order: a length of a few bytes may promise 2^50.
const mostSamples = 1000

// readEverything reads what a source has in order, at random and in ranges, and returns the first error.
func readEverything(t *testing.T, path string, opts source.Options) error {
	t.Helper()
	opts.IsImage = func([]byte) bool { return false }
	s, err := Open(t.Context(), path, opts)
	if err != nil {
		return err
	}
	defer s.Close()
	info := s.Info()
	v, n := source.NewValues(len(info.Fields)), int64(0)
	var first error
	read := func(sample source.Sample) {
		if err := sample.Data.Read(v); err != nil {
			first = cmp.Or(first, fmt.Errorf("%s: %s: %w", path, sample.Name, err))
			return
		}
		for i, f := range info.Fields {
			if size := len(v.Get(i)); !f.Ragged && size != f.RecordBytes() || f.Ragged && size%f.RecordBytes() != 0 {
				first = fmt.Errorf("%w: field %s of %v has a value of %d bytes", errBroken, f.Name, f.Spec, size)
			}
		}
	}
	for sample, err := range s.Samples() {
		if err != nil {
			first = cmp.Or(first, err)
			break
		}
		if read(sample); n == mostSamples {
			break
		}
		n++
	}
	if first == nil && info.Count >= 0 && n != min(info.Count, mostSamples) {
		return fmt.Errorf("%w: %d samples of %d", errBroken, n, info.Count)
	}
	if indexed, ok := s.(source.Indexed); ok && info.Count > 0 {
		for _, i := range []int64{info.Count - 1, 0, info.Count / 2} {
			sample, err := indexed.Sample(i)
			if err != nil {
				first = cmp.Or(first, err)
				continue
			}
			read(sample)
		}
	}
	if ranged, ok := s.(source.Ranged); ok {
		for i, f := range info.Fields {
			n := min(info.Count, 5)
			if ranged.InRanges(i) {
				first = cmp.Or(first, ranged.ReadRange(i, info.Count-n, info.Count, make([]byte, n*int64(f.RecordBytes()))))
			}
		}
	}
	return first
}

// Files of some kilobytes may promise petabytes, lead into circles or out of their folder: each is read in bounded
// memory and time, or refused by an error that names it.
func TestAbsurdUnits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		opts  source.Options
		error string // "" of a source that is read
	}{
		{"rows.h5", source.Options{Records: "*[:]"}, ""},
		{"rows.h5", source.Options{Records: "*"}, "e0/x has 1125899906842624 rows of 8 bytes, too many for one record; take rows as records: --records '*[:]'"},
		{"overflow.h5", source.Options{Records: "*[:]"}, "e1 has 4611686018427387904 rows"},
		{"overflow.h5", source.Options{Records: "*"}, "too many for one record"},
		{"wide.h5", source.Options{Records: "*[:]"}, "e0: x: axis of 1125899906842624 elements"},
		{"wide.h5", source.Options{Records: "*"}, "e0: x: axis of"},
		{"lengths.h5", source.Options{Records: "*"}, "too many for one record"},
		{"lengths.h5", source.Options{Records: "*[:]"}, ""},
		{"none.h5", source.Options{Records: "*"}, "x has no rows in any unit"},
		{"none.h5", source.Options{Records: "*[:]"}, "holds no records"},
		{"circle.h5", source.Options{Records: "*[:]"}, ""},
		{"circle.h5", source.Options{Records: "*/*/*/*/*/x"}, "no group or dataset has such a path"},
		{"leaves.h5", source.Options{Records: "*[:]"}, "leave them out: --fields x"},
		{"external.h5", source.Options{Records: "*[:]"}, "prepare it with --outside"},
		{"indptr.h5ad", source.Options{}, "X/indptr has 281474976710656 values in a file of"},
		{"codes.h5ad", source.Options{}, "obs/type/codes has 281474976710656 values"},
		{"mask.h5ad", source.Options{}, "obs/n/values has"},
		{"index.h5ad", source.Options{}, "obs/_index has"},
		{"categories.h5ad", source.Options{}, "leave them out: --fields X,obs/n"},
		{"names.h5ad", source.Options{}, ""},
		{"shape.h5", source.Options{}, "matrix/shape has"},
		{"barcodes.h5", source.Options{}, "matrix/barcodes has"},
	} {
		t.Run(tt.name+" "+tt.opts.Records, func(t *testing.T) {
			path := filepath.Join("testdata/units/absurd", tt.name)
			var err error
			what := bounds(64<<20, func() string { err = readEverything(t, path, tt.opts); return broken(err) })
			switch {
			case what != "":
				t.Error(what)
			case tt.error == "" && err != nil || tt.error != "" && (err == nil || !strings.Contains(err.Error(), tt.error) ||
				!strings.Contains(err.Error(), path)):
				t.Errorf("error %v, want %s", err, tt.error)
			}
		})
	}
}

// Links of partitions that lead into circles or out of the folder are refused, and not left out.
func TestPartitionLinks(t *testing.T) {
	for _, tt := range []struct{ link, to, error string }{
		{"kind=a/up", "..", "kind=a/up"},
		{"kind=a/other", "../kind=b", ""},
		{"kind=c", "/etc", "prepare it with --outside"},
		{"kind=a0", "nowhere", "kind=a0"},
	} {
		dir := t.TempDir()
		for _, name := range []string{"kind=a", "kind=b"} {
			err := os.Mkdir(filepath.Join(dir, name), 0o777)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name, "0.csv"), []byte("x,text\n1,a\n"), 0o666)
			}
			require.NoError(t, err)
		}
		for _, name := range []string{tt.link, "kind=b/more"} { // each round would have twice as many
			require.NoError(t, os.Symlink(tt.to, filepath.Join(dir, name)))
		}
		var err error
		what := bounds(64<<20, func() string { err = readEverything(t, dir, source.Options{}); return "" })
		if what != "" || err == nil || !strings.Contains(err.Error(), tt.error) {
			t.Errorf("%s -> %s: %s, error %v, want %s", tt.link, tt.to, what, err, tt.error)
		}
	}
}
