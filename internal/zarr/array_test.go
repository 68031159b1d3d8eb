package zarr

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/tensor"
)

// shape is that of all arrays of testdata/generate.py.
var shape = [3]int{23, 6, 5}

// hierarchies returns the files of the hierarchies in a folder, by name.
func hierarchies(t testing.TB, dir string) map[string]Files {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := make(map[string]Files)
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		switch filepath.Ext(path) {
		case ".zarr":
			all[e.Name()] = vfs.Folder(path)
		case ".zip":
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			if all[e.Name()], err = Zip(bytes.NewReader(b), int64(len(b))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// dtypeOf returns the type that is in the name of a hierarchy, and how many numbers an element has.
func dtypeOf(t testing.TB, name string) (tensor.DType, int) {
	t.Helper()
	kind := strings.Split(name, "-")[2]
	switch kind {
	case "complex64":
		return tensor.Float32, 2
	case "complex128":
		return tensor.Float64, 2
	}
	d, err := tensor.ParseDType(kind)
	require.NoError(t, err)
	return d, 1
}

// values returns what generate.py writes.
func values(t testing.TB, name string) []byte {
	dtype, parts := dtypeOf(t, name)
	n := number{dtype: dtype, parts: parts}
	var b []byte
	for i := range shape[0] * shape[1] * shape[2] {
		x := float64(i * 37 % 120)
		record := i / (shape[1] * shape[2])
		missing := (strings.Contains(name, "fill") || strings.Contains(name, "nan") || strings.Contains(name, "part.") || strings.Contains(name, "128-big")) && (record < 4 || record >= 12)
		switch {
		case missing:
			b = append(b, fillOf(n, name)...)
		case dtype == tensor.Bool && i%3 == 0:
			b = append(b, 1)
		case dtype == tensor.Bool:
			b = append(b, 0)
		case dtype.IsFloat():
			b = append(b, element(n, x)...)
			if parts == 2 {
				b = append(b, element(n, x/2)...)
			}
		default:
			b = append(b, element(n, x)...)
		}
	}
	return b
}

func element(n number, x float64) []byte {
	b := make([]byte, n.dtype.Size())
	tensor.PutFloats(b, n.dtype, []float64{x})
	return b
}

func fillOf(n number, name string) []byte {
	switch {
	case strings.Contains(name, "nan"):
		return element(n, math.NaN())
	case n.dtype == tensor.Bool:
		return []byte{1}
	case n.parts == 2:
		return append(element(n, 7), element(n, 0)...)
	case n.dtype.IsFloat():
		return element(n, 7)
	}
	b, _ := n.dtype.AppendExact(nil, tensor.Int(-(1<<62)-1))
	return b
}

// checkAll compares the values of all arrays in a folder.
func checkAll(t *testing.T, dir string, least int) {
	pool := chunk.NewPool(2)
	defer pool.Close()
	n := 0
	for name, files := range hierarchies(t, dir) {
		g, err := Open(files)
		if err != nil || len(g.Arrays) == 0 {
			t.Errorf("%s: %d arrays, %v", name, len(g.Arrays), err)
			continue
		}
		for _, a := range g.Arrays {
			checkArray(t, name, a, pool)
			n++
		}
	}
	if n < least {
		t.Errorf("only %d arrays", n)
	}
}

func checkArray(t *testing.T, name string, a *Array, pool *chunk.Pool) {
	spec, err := a.Spec()
	if err != nil {
		t.Errorf("%s: %s: %v", name, a.Path, err)
		return
	}
	dtype, parts := dtypeOf(t, name)
	want := tensor.Shape{shape[1], shape[2]}
	if parts == 2 {
		want = append(want, 2)
	}
	if spec.DType != dtype || !slices.Equal(spec.Shape, want) || a.Records() != int64(shape[0]) {
		t.Errorf("%s: %s: %d records of %v %v", name, a.Path, a.Records(), spec.DType, spec.Shape)
		return
	}
	r, err := a.Reader(chunk.Options{Pool: pool})
	if err != nil {
		t.Errorf("%s: %s: %v", name, a.Path, err)
		return
	}
	all := values(t, name)
	got := make([]byte, len(all))
	if err := r.Records(t.Context(), got, 0, a.Records()); err != nil || !bytes.Equal(got, all) {
		t.Errorf("%s: %s: wrong values, or %v", name, a.Path, err)
		return
	}
	order := []int{22, 0, 7, 7, 8, 21, 3, 12, 11, 1}
	got = make([]byte, len(order)*r.RecordBytes())
	if err := r.Gather(t.Context(), got, order); err != nil {
		t.Errorf("%s: %s: %v", name, a.Path, err)
	}
	for i, k := range order {
		if n := r.RecordBytes(); !bytes.Equal(got[i*n:(i+1)*n], all[k*n:(k+1)*n]) {
			t.Errorf("%s: %s: wrong record %d", name, a.Path, k)
		}
	}
}

func TestArrays(t *testing.T) { checkAll(t, "testdata", 12) }

// Files of zarr-python, numcodecs and tensorstore.
func TestArraysOfLibraries(t *testing.T) {
	dir := t.TempDir()
	pythontest.Run(t, "import zarr.codecs.numcodecs, tensorstore", "-W", "ignore", "testdata/generate.py", dir)
	checkAll(t, dir, 160)
}

// A fill value that the type does not have is refused, as NumPy does, and not cut.
func TestFillValues(t *testing.T) {
	for _, c := range []struct {
		dtype tensor.DType
		text  string
		want  string // of the element; "" is refused
	}{
		{tensor.Uint8, "255", "255"}, {tensor.Uint8, "300", ""}, {tensor.Uint8, "-1", ""}, {tensor.Int8, "-128", "-128"},
		{tensor.Int8, "200", ""}, {tensor.Int32, `"NaN"`, ""}, {tensor.Int32, "3.0", "3"}, {tensor.Int32, "3.5", ""},
		{tensor.Int64, "-9223372036854775808", "-9223372036854775808"}, {tensor.Int64, "9223372036854775808", ""},
		{tensor.Uint64, "18446744073709551615", "18446744073709551615"}, {tensor.Bool, "true", "true"}, {tensor.Bool, "1", ""},
		{tensor.Float16, "0.1", "0.1"}, {tensor.Float16, "1e6", "+Inf"}, {tensor.BFloat16, `"-Infinity"`, "-Inf"},
		{tensor.Float64, `"0x7ff8000000000001"`, "NaN"},
	} {
		b, err := number{dtype: c.dtype, parts: 1}.fillValue([]byte(c.text))
		if c.want == "" && err == nil || c.want != "" && (err != nil || c.dtype.Text(b) != c.want) {
			t.Errorf("%s of %v: %x, %v; want %q", c.text, c.dtype, b, err, c.want)
		}
	}
}
