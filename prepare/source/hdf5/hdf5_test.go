package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// mutations is how many corrupt files TestMutated reads:
//
//	go test ./prepare/source/hdf5 -run TestMutated -mutations 50000
var mutations = flag.Int("mutations", 500, "corrupt files that TestMutated reads")

const small = "testdata/small-fields.h5"

// open opens a file; nil and the error if it is none.
func open(t testing.TB, path string) (*File, error) {
	t.Helper()
	f, err := vfs.Open(path)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	m, err := meta.Open(f, info.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	return New(t.Context(), rootOf(t, path), path, f, m), nil
}

// read returns the values of a column, printed.
func read(c array.Column) (list []string, err error) {
	cursor, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	for {
		b, err := cursor.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		text := string(b)
		if c.Field.Content != tensor.Text {
			text = fmt.Sprint(numbersOf(c.Field, b))
		}
		if list = append(list, text); int64(len(list)) > c.Count {
			return nil, errors.New("more values than there are")
		}
	}
}

// numbersOf decodes the types of the file.
func numbersOf(f source.Field, b []byte) (list []float64) {
	for size := f.DType.Size(); len(b) >= size; b = b[size:] {
		switch f.DType.String() {
		case "uint8":
			list = append(list, float64(b[0]))
		case "uint16":
			list = append(list, float64(binary.LittleEndian.Uint16(b)))
		case "int8":
			list = append(list, float64(int8(b[0])))
		case "int16":
			list = append(list, float64(int16(binary.LittleEndian.Uint16(b))))
		case "int32":
			list = append(list, float64(int32(binary.LittleEndian.Uint32(b))))
		case "int64":
			list = append(list, float64(int64(binary.LittleEndian.Uint64(b))))
		case "float32":
			list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		default:
			list = append(list, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	}
	return list
}

func TestFields(t *testing.T) {
	f, err := open(t, small)
	require.NoError(t, err)
	defer f.Close()
	script, err := os.ReadFile("testdata/small.py")
	require.NoError(t, err)
	each := func(print func(i int) any) (list []string) {
		for i := range 12 {
			list = append(list, fmt.Sprint(print(i)))
		}
		return list
	}
	word := func(i int) any { return fmt.Sprint("w", i*i) }
	ints := func(n ...int) []int { return n }
	virtual := []int{6, 7, 8, 9, 10, 11, 0, 9, 1, 9, 2, 9}
	want := map[string][]string{
		"numbers": each(func(i int) any { return ints(i) }), "text": each(word), "fixed": each(word), "letters": each(word), "c/t": each(word),
		"kind": each(func(i int) any { return ints(i % 2 * 3) }), "c/n": each(func(i int) any { return ints(i) }), "c/m": each(func(i int) any { return ints(i, i+1) }),
		"c/pos/x": each(func(i int) any { return []float64{float64(i) / 2} }), "c/pos/y": each(func(i int) any { return []float64{float64(i) / 4} }),
		"c/many/x": each(func(i int) any { return ints(i, 2) }), "c/many/y": each(func(i int) any { return ints(1, i) }),
		"list":    each(func(i int) any { return ints(0, 1, 2)[:i%4%4] }),
		"virtual": each(func(i int) any { return ints(virtual[i]) }), "outside": each(func(i int) any { return script[i : i+1] }),
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	var selection []column.Selection
	for _, name := range names {
		selection = append(selection, column.Selection{Column: name})
	}
	columns, _, err := f.Columns(selection)
	require.NoError(t, err)
	for i, c := range columns {
		got, err := read(c)
		if err != nil || !slices.Equal(got, want[names[i]]) {
			t.Errorf("%s: %q, error %v; want %q", names[i], got, err, want[names[i]])
		}
	}
	want = map[string][]string{
		"obs/kind": each(func(i int) any { return ints(i % 3) }), "obs/n": each(func(i int) any { return ints(i) }), "obs/_index": each(word),
		"X": each(func(i int) any {
			first := i/3*3 + i%3*(i%3-1)/2
			return ints(first%5, first, (first+1)%5, first+1)[:i%3*2]
		}),
	}
	cells := f.Cells()
	members, err := cells.Members()
	if err != nil || len(members) != len(want) {
		t.Fatalf("%+v, error %v", members, err)
	}
	for _, m := range members {
		columns, _, err := cells.Open([]string{m.Name})
		require.NoError(t, err)
		c := columns[0]
		got, err := read(c)
		if err != nil || !slices.Equal(got, want[m.Name]) || c.At == nil {
			t.Errorf("%s: %q, error %v; want %q", m.Name, got, err, want[m.Name])
		}
		if m.Name == "obs/kind" && !slices.Equal(c.Field.Classes, []string{"p", "q", "r"}) {
			t.Errorf("%s: classes %q", m.Name, c.Field.Classes)
		}
		if m.Name == "X" && (c.Field.Width != 5 || !slices.Equal(c.Field.Features, []string{"g0", "g1", "g2", "g3", "g4"})) {
			t.Errorf("%s: %+v", m.Name, c.Field)
		}
	}
}

// No corrupt file may crash, hang, take memory without bound, or read a file that is not in its folder.
func TestMutated(t *testing.T) {
	good, err := os.ReadFile(small)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.h5")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "small.py"), good[:100], 0o600))
	rng := rand.New(rand.NewPCG(5, uint64(*mutations)))
	var before, after runtime.MemStats
	opened, whole, values := 0, 0, 0
	for range *mutations {
		b := bytes.Clone(good)
		for range 1 + rng.IntN(3) {
			i := rng.IntN(len(b))
			switch rng.IntN(3) {
			case 0:
				b[i] ^= 1 << rng.IntN(8)
			case 1:
				b[i] = byte(rng.Uint32())
			default:
				x := []uint64{0, 1<<64 - 1, 1 << 31, 1<<63 - 1, uint64(len(b)), uint64(i)}[rng.IntN(6)]
				for j := range min(1<<rng.IntN(4), len(b)-i) {
					b[i+j] = byte(x >> (8 * j))
				}
			}
		}
		require.NoError(t, os.WriteFile(path, b, 0o600))
		runtime.ReadMemStats(&before)
		f, err := open(t, path)
		if err != nil {
			continue
		}
		opened++
		n, bad := exercise(t, f)
		values += n
		if !bad {
			whole++
		}
		require.NoError(t, f.Close())
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
			t.Fatalf("%d bytes of memory for a file of %d: %x", n, len(b), b)
		}
	}
	t.Logf("%d corrupt files: %d opened, %d of them read without an error, %d values", *mutations, opened, whole, values)
	if opened < *mutations/10 || values < *mutations || whole == opened {
		t.Error("the corruption does not get as far as the data, or always does")
	}
}

// mostValues is how many values of a column exercise reads: a corrupt length can be large.
const mostValues = 100

// exercise reads the columns of a file one by one.
func exercise(t *testing.T, f *File) (values int, bad bool) {
	t.Helper()
	var selection []column.Selection
	for _, d := range f.meta.Datasets() {
		selection = append(selection, column.Selection{Column: trim(d.Path)})
	}
	for _, w := range selection {
		columns, _, err := f.Columns([]column.Selection{w})
		bad = bad || err != nil
		some, failed := exerciseColumns(t, columns)
		values, bad = values+some, bad || failed
	}
	cells := f.Cells()
	if cells == nil {
		return values, true
	}
	members, err := cells.Members()
	bad = bad || err != nil
	for _, m := range members {
		if m.Err != nil {
			bad = true
			continue
		}
		columns, _, err := cells.Open([]string{m.Name})
		bad = bad || err != nil
		some, failed := exerciseColumns(t, columns)
		values, bad = values+some, bad || failed
	}
	return values, bad
}

// exerciseColumns reads values in order, and the last one alone.
func exerciseColumns(t *testing.T, columns []array.Column) (values int, bad bool) {
	t.Helper()
	for _, c := range columns {
		if c.Open == nil { // it could not be opened
			return values, true
		}
		cursor, err := c.Open()
		for n := 0; err == nil && n < mostValues; n++ {
			var b []byte
			if b, err = cursor.Next(); err == nil {
				values++
				if c.Field.DType.Size() > 0 && len(b)%c.Field.DType.Size() != 0 || strings.HasPrefix(string(b), "root:") {
					t.Fatalf("%s: %q", c.Field.Name, b)
				}
			}
		}
		bad = bad || err != nil && !errors.Is(err, io.EOF)
		if c.At != nil && c.Count > 0 {
			_, err := c.At(c.Count-1, nil)
			bad = bad || err != nil
		}
	}
	return values, bad
}

// rootOf opens the files of the source at path.
func rootOf(t testing.TB, path string) *vfs.Root {
	t.Helper()
	root, err := source.OpenRoot(path, source.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}
