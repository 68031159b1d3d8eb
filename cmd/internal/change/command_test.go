package change

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// people makes a dataset of four records: a name, a label, and a number.
func people(t *testing.T) string {
	name := store.NewRagged("name", tensor.Uint8)
	name.Content = tensor.Text
	label := store.NewField("label", tensor.Int64)
	label.Classes = []string{"cat", "dog"}
	schema := store.Schema{Fields: []store.Field{name, label, store.NewField("id", tensor.Int64)}}
	return datasettest.BuildFlat(t, schema, flat.Options{}, 4, store.Info{}, func(i int, r *store.Record) {
		r.Values[0] = append(r.Values[0][:0], fmt.Sprint("n", i)...)
		binary.LittleEndian.PutUint64(r.Values[1], uint64(i%2))
		binary.LittleEndian.PutUint64(r.Values[2], uint64(10*i))
	})
}

func run(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := Command()
	cmd.SetContext(t.Context())
	var out, diag bytes.Buffer
	code = cli.Run(cmd, args, strings.NewReader(stdin), &out, &diag)
	return code, out.String(), diag.String()
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

// numbersOf returns the values of a column, as integers or floats of 4 or 8 bytes.
func numbersOf(t *testing.T, path, field string) (list []uint64) {
	t.Helper()
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	size := ds.Schema().Fields[ds.Schema().Index(field)].RecordBytes()
	b := make([]byte, 4*size)
	require.NoError(t, ds.Gather(t.Context(), field, []int{0, 1, 2, 3}, b))
	for ; len(b) > 0; b = b[size:] {
		var word [8]byte
		copy(word[:], b[:size])
		list = append(list, binary.LittleEndian.Uint64(word[:]))
	}
	return list
}

// array returns an .npy file of int64.
func array(numbers ...int64) string {
	text := layout.Header(tensor.Spec{DType: tensor.Int64}, int64(len(numbers)))
	for _, n := range numbers {
		text = binary.LittleEndian.AppendUint64(text, uint64(n))
	}
	return string(text)
}

func TestColumns(t *testing.T) {
	ds := people(t)
	for _, c := range []struct {
		args, stdin, field string
		want               string
	}{
		{args: "add DS a " + file(t, "a.npy", array(1, 2, 3, 4)), field: "a", want: "[1 2 3 4]"},
		{args: "add DS b -", stdin: array(5, 6, 7, 8), field: "b", want: "[5 6 7 8]"},
		{args: "add DS c " + file(t, "c.csv", "x,y\n1,9\n1,8\n1,7\n1,6\n") + " --field y --fields y:int64", field: "c", want: "[9 8 7 6]"},
		{args: "add DS d " + file(t, "d.csv", "id,d\n30,1\n0,2\n99,3\n") + " --on id --fields id:int64,d:int64 --missing 7", field: "d", want: "[2 7 7 1]"},
		{args: "add DS e " + file(t, "m.csv", "id,e\n30,1\n0,2\n99,3\n") + " --on id --fields id:int64,e:int64 --missing 9007199254740993", field: "e", want: "[2 9007199254740993 9007199254740993 1]"},
		{args: "add DS e,f=g " + file(t, "odd.csv", "id,\"e,f=g\"\n30,1\n0,2\n") + " --on id --missing 7", field: "e,f=g", want: "[2 7 7 1]"},
		{args: "set DS label " + file(t, "l.csv", "name,label\nn0,dog\nn3,emu\n") + " --on name", field: "label", want: "[1 1 0 2]"},
		{args: "set DS a " + file(t, "e.csv", "name,a\nn1,-1\n") + " --on name", field: "a", want: "[1 18446744073709551615 3 4]"},
		{args: "rename DS a z", field: "z", want: "[1 18446744073709551615 3 4]"},
		{args: "drop DS b c", field: "z", want: "[1 18446744073709551615 3 4]"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "DS", ds))
		code, out, diag := run(t, c.stdin, args...)
		if code != 0 || !strings.Contains(out, ": generation ") {
			t.Fatalf("%s: code %d: %s%s", c.args, code, out, diag)
		}
		if got := fmt.Sprint(numbersOf(t, ds, c.field)); got != c.want {
			t.Errorf("%s: %s, want %s", c.args, got, c.want)
		}
	}
	m, err := store.ReadManifest(ds)
	if err != nil || m.Change.By != "penstock column drop "+ds+" b c" {
		t.Errorf("%v: %v", m.Change, err)
	}
	if got := m.Fields[m.Schema().Index("label")].Classes; fmt.Sprint(got) != "[cat dog emu]" {
		t.Errorf("classes %q", got)
	}
}

func TestRefusals(t *testing.T) {
	ds := people(t)
	four, three := file(t, "four.npy", array(1, 2, 3, 4)), file(t, "three.npy", array(1, 2, 3))
	table := file(t, "t.csv", "name,x,y\nn0,1,2\nn0,3,4\n")
	few := file(t, "few.csv", "name,x\nn0,1\n")
	for _, c := range []struct{ args, stdin, says string }{
		{"add DS", "", "needs DATASET, NAME and VALUES"},
		{"add DS a " + three, "", "has 3 records, and"},
		{"add DS label " + four, "", "it has a column \"label\" already; set replaces one"},
		{"set DS a " + four, "", "it has no column \"a\"; add makes one"},
		{"add DS a - --on name", "", "are for files"},
		{"add DS a " + four + " --resume", "", "--resume is for values from standard input"},
		{"add DS a " + four + " --missing 3", "", "--missing goes with --on"},
		{"add DS a -", array(1, 2, 3), "an array of 3 rows, and"},
		{"add DS a -", array(1, 2, 3, 4)[:4096+16], "there are 2 values, and the dataset has 4 records"},
		{"add DS z " + table, "", "choose one with --field"},
		{"add DS x " + table + " --on name", "", "records 0 and 1 of the right side have the same name, \"n0\""},
		{"add DS x " + few + " --on name", "", "has no record for 3 records of"},
		{"add DS x " + few + " --on name --missing red", "", `--missing: "red" is not a value of type `},
		{"add DS x " + few + " --on name --fields x:int64", "", "to match records by; if it has one, list it in --fields"},
		{"add DS x " + few + " --on age", "", "age"},
		{"set DS label " + file(t, "n.npy", array(0, 1, 2, 3)), "", "label 2, but there are 2 classes"},
		{"add DS a " + four + " --of 2", "", "it keeps no generation 2"},
		{"add DS a " + four + " --of 1 --on name", "", "--of is a generation, for values by position"},
		{"add DS a - --of -1", "", "--of -1: it is the number of a generation, or its tag"},
		{"drop DS", "", "needs DATASET and names of columns"},
		{"rename DS label id", "", "it has a column \"id\" already"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "DS", ds))
		if code, out, diag := run(t, c.stdin, args...); code == 0 || !strings.Contains(diag, c.says) {
			t.Errorf("%s: code %d: %s%s, want %s", c.args, code, out, diag, c.says)
		}
	}
	if m, err := store.ReadManifest(ds); err != nil || m.Generation != 1 {
		t.Errorf("the dataset was changed: %v", err)
	}
}

// A column from standard input that ends too early continues where it was left.
func TestResume(t *testing.T) {
	ds := people(t)
	whole := array(1, 2, 3, 4)
	if code, _, diag := run(t, whole[:4096+16], "add", ds, "a", "-"); code != 1 {
		t.Fatal(diag)
	}
	rest := whole[:4096] + whole[4096+16:]
	code, out, diag := run(t, rest, "add", ds, "a", "-", "--resume")
	if code != 0 || !strings.HasPrefix(out, "{\"first\": 2}\n") {
		t.Fatalf("code %d: %s%s", code, out, diag)
	}
	if got := fmt.Sprint(numbersOf(t, ds, "a")); got != "[1 2 3 4]" {
		t.Error(got)
	}
}

// Numbers of classes keep the type of the column that they replace, whatever theirs is.
func TestClassesOfOtherTypes(t *testing.T) {
	labelled := func(d tensor.DType, classes ...string) string {
		label := store.NewField("label", d)
		label.Classes = classes
		schema := store.Schema{Fields: []store.Field{label, store.NewField("id", tensor.Int64)}}
		return datasettest.BuildFlat(t, schema, flat.Options{}, 4, store.Info{}, func(i int, r *store.Record) {
			r.Values[0][0] = byte(i % 2)
			binary.LittleEndian.PutUint64(r.Values[1], uint64(i))
		})
	}
	wide, narrow := labelled(tensor.Int64, "cat", "dog"), labelled(tensor.Uint8, "dog", "emu")
	names := file(t, "l.csv", "id,label\n3,cat\n")
	for _, c := range []struct{ ds, values, want string }{
		{wide, narrow, "[1 2 1 2]"},
		{narrow, wide, "[0 1 0 1]"},
		{narrow, names + " --on id --fields id:int64,label:label", "[0 1 0 2]"},
	} {
		args := append([]string{"set", c.ds, "label"}, strings.Fields(c.values)...)
		if code, _, diag := run(t, "", args...); code != 0 {
			t.Errorf("%s: %s", args, diag)
		} else if got := fmt.Sprint(numbersOf(t, c.ds, "label")); got != c.want {
			t.Errorf("%s: %s, want %s", args, got, c.want)
		}
	}
}

// TestKeys matches labels by the names of their classes, and numbers of other types by their values.
func TestKeys(t *testing.T) {
	dataset := func(n int, key store.Field, keys ...byte) string {
		schema := store.Schema{Fields: []store.Field{key, store.NewField("x", tensor.Int64)}}
		return datasettest.BuildFlat(t, schema, flat.Options{}, n, store.Info{}, func(i int, r *store.Record) {
			r.Values[0][0] = keys[i]
			r.Values[1][0] = byte(10 * (i + 1))
		})
	}
	label := func(classes ...string) store.Field {
		f := store.NewField("key", tensor.Int64)
		f.Classes = classes
		return f
	}
	for _, c := range []struct{ ds, values, want string }{
		{dataset(4, label("cat", "dog"), 0, 1, 1, 0), dataset(2, label("dog", "cat"), 0, 1), "[20 10 10 20]"},
		{dataset(4, store.NewField("key", tensor.Int64), 7, 5, 6, 5), dataset(2, store.NewField("key", tensor.Uint8), 5, 7), "[20 10 0 10]"},
		{dataset(4, store.NewField("key", tensor.Bool), 1, 0, 1, 1), dataset(2, store.NewField("key", tensor.Bool), 0, 1), "[20 10 20 20]"},
	} {
		args := []string{"add", c.ds, "y", c.values, "--field", "x", "--on", "key", "--missing", "0"}
		if code, _, diag := run(t, "", args...); code != 0 {
			t.Errorf("%s", diag)
		} else if got := fmt.Sprint(numbersOf(t, c.ds, "y")); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// Values are of the records of the generation that --of names, also when the newest one has as many.
func TestOf(t *testing.T) {
	ds := people(t)
	for _, marked := range []uint64{1, 2} {
		if _, err := edit.At(ds).Delete(edit.Chosen{Words: []uint64{marked}}, edit.Options{}); err != nil {
			t.Fatal(err)
		}
		if marked == 1 {
			if _, err := edit.At(ds).Undelete(edit.Chosen{Words: []uint64{1}}, edit.Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	three := array(1, 2, 3)
	for _, values := range []string{"-", file(t, "three.npy", three)} {
		code, out, diag := run(t, three, "add", ds, "a", values, "--of", "2")
		if code != 1 || !strings.Contains(diag, "records were restored since the column was begun, in generation 2") {
			t.Errorf("%s: code %d: %s%s", values, code, out, diag)
		}
	}
	if code, _, diag := run(t, "", "add", ds, "a", file(t, "four.npy", array(1, 2, 3, 4)), "--of", "1"); code != 0 {
		t.Fatal(diag)
	}
	if code, _, diag := run(t, array(1, 3, 4), "add", ds, "b", "-", "--of", "4"); code != 0 {
		t.Fatal(diag)
	}
}

// A column that is set keeps its type: numbers that it holds become its own, and others are refused.
func TestSetKeepsTheType(t *testing.T) {
	dataset := func(f store.Field, values ...float64) string {
		f.Name = "a"
		return datasettest.BuildFlat(t, store.Schema{Fields: []store.Field{f}}, flat.Options{}, len(values), store.Info{},
			func(i int, r *store.Record) {
				b, err := f.DType.AppendNearest(nil, tensor.Float(values[i]))
				require.NoError(t, err)
				copy(r.Values[0], b)
			})
	}
	of := func(d tensor.DType) store.Field { return store.NewField("a", d) }
	label := of(tensor.Int64)
	label.Classes = []string{"cat", "dog"}
	small := of(tensor.Uint8)
	small.Classes = label.Classes
	for _, c := range []struct {
		old    store.Field
		values tensor.DType
		value  float64
		want   string // of the error; "" if the value fits
	}{
		{of(tensor.Uint8), tensor.Int64, 255, ""},
		{of(tensor.Uint8), tensor.Int64, 300, "record 1: 300 is not a number that uint8 holds"},
		{of(tensor.Uint8), tensor.Int16, -1, "record 1: -1 is not a number that uint8 holds"},
		{of(tensor.Int64), tensor.Int8, -1, ""},
		{of(tensor.Int64), tensor.Float64, 0.5, "is int64, and the values are float64: to give it their type, add --change-type"},
		{of(tensor.Int64), tensor.Float32, math.NaN(), "column a is int64, and the values are float32"},
		{of(tensor.Float32), tensor.Float64, 0.5, ""},
		{of(tensor.Float32), tensor.Float64, math.NaN(), ""},
		{of(tensor.Float32), tensor.Float64, 1e300, "record 1: 1e+300 is not a number that float32 holds"},
		{of(tensor.Float64), tensor.Int32, -7, ""},
		{of(tensor.Float32), tensor.Int64, 1<<24 + 1, "record 1: 16777217 is not a number that float32 holds"},
		{of(tensor.Bool), tensor.Uint8, 1, "column a is bool, and the values are uint8"},
		{label, tensor.Uint8, 1, ""},
		{label, tensor.Uint8, 2, "label 2, but there are 2 classes"},
		{small, tensor.Int64, 1, ""},
		{small, tensor.Int64, 2, "label 2, but there are 2 classes"},
		{small, tensor.Uint8, 2, "label 2, but there are 2 classes"},
		{label, tensor.Float64, 0.5, "column a is a class, of 2, and the values are float64"},
	} {
		ds, values := dataset(c.old, 0, 0, 0), dataset(of(c.values), 0, c.value, 0)
		code, out, diag := run(t, "", "set", ds, "a", values)
		m, err := store.ReadManifest(ds)
		require.NoError(t, err)
		switch {
		case m.Fields[0].DType != c.old.DType || len(m.Fields[0].Classes) != len(c.old.Classes):
			t.Errorf("%v from %v: its type is %v", c.old, c.values, m.Fields[0])
		case c.want == "" && (code != 0 || m.Generation != 2):
			t.Errorf("%v from %v: code %d: %s%s", c.old, c.values, code, out, diag)
		case c.want != "" && (code == 0 || !strings.Contains(diag, c.want) || m.Generation != 1):
			t.Errorf("%v from %v: code %d: %s%s, want %s", c.old, c.values, code, out, diag, c.want)
		}
		if max := m.Statistics["a"].Max; c.want == "" && c.value > 0 && max != c.value {
			t.Errorf("%v from %v: %v, want %v", c.old, c.values, max, c.value)
		}
	}
	ds := dataset(of(tensor.Int64), 1, 2)
	if code, _, diag := run(t, "", "set", ds, "a", dataset(of(tensor.Float64), 0.5, 1), "--change-type"); code != 0 {
		t.Error(diag)
	} else if m, err := store.ReadManifest(ds); err != nil || m.Fields[0].DType != tensor.Float64 {
		t.Errorf("%v: %v", m.Fields, err)
	}
}
