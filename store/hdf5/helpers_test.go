package hdf5

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// eachContainer runs a test once for each container of this build, as the one that writes new files: first the encoder, which
// releases and wheels have.
func eachContainer(t *testing.T, test func(t *testing.T)) {
	all := containers
	defer func() { containers = all }()
	for _, c := range slices.Backward(all) {
		containers = []container{c}
		t.Run(c.name(), test)
	}
}

// onlyBy leaves the container of that name.
func onlyBy(name string) {
	containers = slices.DeleteFunc(containers, func(c container) bool { return c.name() != name })
}

// imageSchema is images of that size and their labels.
func imageSchema(h, w int) store.Schema {
	images := store.NewField("images", tensor.Uint8, 3, h, w)
	images.Layout = tensor.CHW
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"cat", "dog", "žluťoučký kůň"}
	return store.Schema{Fields: []store.Field{images, labels}}
}

// everyType has a field of each type, some scalar, some with many axes.
func everyType() store.Schema {
	var s store.Schema
	shapes := [][]int{{}, {5}, {2, 3}, {1, 2, 1, 3, 1, 2, 1}}
	for d := tensor.Bool; d <= tensor.Float64; d++ {
		s.Fields = append(s.Fields, store.NewField("f_"+d.String(), d, shapes[int(d)%len(shapes)]...))
	}
	return s
}

// fill makes record i: pseudo-random values, and a label where there are classes.
func fill(s store.Schema, r *store.Record, i int) {
	rng := rand.New(rand.NewPCG(7, uint64(i)))
	for k, f := range s.Fields {
		v := r.Values[k]
		for at := 0; at < len(v); at += f.DType.Size() {
			word := element8(f, rng, i)
			copy(v[at:at+f.DType.Size()], word[:])
		}
	}
}

// element8 makes an element in the first bytes of its result.
func element8(f store.Field, rng *rand.Rand, i int) (b [8]byte) {
	x := rng.NormFloat64()
	bits := rng.Uint64()
	switch f.DType {
	case tensor.Bool:
		bits &= 1
	case tensor.Float16:
		bits = uint64(tensor.HalfOf(float32(x)))
	case tensor.BFloat16:
		bits = uint64(tensor.BrainOf(float32(x)))
	case tensor.Float32:
		bits = uint64(math.Float32bits(float32(x)))
	case tensor.Float64:
		bits = math.Float64bits(x)
	}
	if n := len(f.Classes); n > 0 {
		bits = uint64(i % n)
	}
	binary.LittleEndian.PutUint64(b[:], bits)
	return b
}

// contents returns the bytes that each field has to have with n records.
func contents(s store.Schema, n int) map[string][]byte {
	all := make(map[string][]byte)
	r := store.NewRecord(s)
	for i := range n {
		fill(s, r, i)
		for k, f := range s.Fields {
			all[f.Name] = append(all[f.Name], r.Values[k]...)
		}
	}
	return all
}

// numbered makes a record of every number.
type numbered struct {
	schema store.Schema
	fill   func(r *store.Record, i int)
}

// filled are the records of fill.
func filled(s store.Schema) numbered {
	return numbered{s, func(r *store.Record, i int) { fill(s, r, i) }}
}

// add appends the records a to b.
func (x numbered) add(t testing.TB, w store.Writer, a, b int) {
	t.Helper()
	r := store.NewRecord(x.schema)
	for i := a; i < b; i++ {
		x.fill(r, i)
		require.NoError(t, w.Append(r))
	}
}

// write writes the records a to b into a file, after those that it has.
func (x numbered) write(t testing.TB, path string, a, b int, opts Options, info store.Info) *store.Manifest {
	t.Helper()
	w, err := Create(path, x.schema, opts)
	require.NoError(t, err)
	defer w.Close()
	x.add(t, w, a, b)
	m, err := w.Commit(info)
	require.NoError(t, err)
	return m
}

// appendAll adds records 0 to n.
func appendAll(t testing.TB, w store.Writer, s store.Schema, n int) {
	t.Helper()
	filled(s).add(t, w, 0, n)
}

// build writes n records into a file made for room of them and returns its path.
func buildFile(t testing.TB, s store.Schema, n, room int, info store.Info) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.h5")
	filled(s).write(t, path, 0, n, Options{Records: int64(room)}, info)
	return path
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// entries lists a folder.
func entries(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// createDirect is Create for a file that is made at once; it returns its container, too.
func createDirect(t *testing.T, dest string, s store.Schema, opts Options) (store.Writer, *writer) {
	t.Helper()
	stage, err := write.OpenStage(dest, write.StageOptions{Keep: opts.Journal != nil})
	require.NoError(t, err)
	c, err := newWriter(stage, s, opts)
	if err != nil {
		t.Fatal(errors.Join(err, stage.Leave()))
	}
	return write.NewWriter(stage, c, c), c
}

// TestMain runs the tests, in memory where there is room. A child, which may be killed, takes no folder there.
func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		os.Exit(m.Run())
	}
	os.Exit(crash.Main(m))
}
