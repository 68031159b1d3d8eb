package change

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

func numbersFrom0(t *testing.T) string {
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Int64)}}
	return datasettest.BuildFlat(t, schema, flat.Options{}, 100, store.Info{}, func(i int, r *store.Record) {
		binary.LittleEndian.PutUint64(r.Values[0], uint64(i))
	})
}

func runChange(t *testing.T, cmd *cobra.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd.SetContext(t.Context())
	var out, diag bytes.Buffer
	code = cli.Run(cmd, args, strings.NewReader(""), &out, &diag)
	return code, out.String(), diag.String()
}

func TestDeleteSelectRestore(t *testing.T) {
	ds := numbersFrom0(t)
	for _, step := range []struct {
		cmd     *cobra.Command
		args    []string
		records int64
	}{
		{Delete(), []string{ds, "--where", "x >= 90"}, 90},
		{Delete(), []string{ds, "--where", "x < 10"}, 80},
		{Select(), []string{ds, "--where", "x < 80"}, 70},
		{Restore(), []string{"--deleted", ds, "--where", "x = 95 or x = 20"}, 71},
		{Restore(), []string{"--deleted", ds, "--records", "92-94", "--of", "1"}, 74},
		{Restore(), []string{"--deleted", ds}, 100},
		{Restore(), []string{ds + "@2"}, 90},
	} {
		code, out, diag := runChange(t, step.cmd, step.args...)
		if m, err := store.ReadManifest(ds); code != 0 || err != nil || m.Live() != step.records {
			t.Fatalf("%q: code %d, %d records, want %d: %s%s%v", step.args, code, m.Live(), step.records, out, diag, err)
		}
	}
	code, out, _ := runChange(t, Delete(), "--json", ds, "--where", "x = 89")
	var made Changed
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil || made.Changed != 1 || made.Records != 89 || made.Deleted != 11 {
		t.Errorf("%s: %v", out, err)
	}
	if _, out, _ := runChange(t, Log(), ds); !strings.Contains(out, "delete 10 records") || !strings.Contains(out, " --where 'x = 89'") {
		t.Errorf("log: %s", out)
	}
}

func TestDeleteRefuses(t *testing.T) {
	ds := numbersFrom0(t)
	for want, try := range map[string]struct {
		cmd  *cobra.Command
		args []string
	}{
		"needs --where":                      {Delete(), []string{ds}},
		"give one of them":                   {Delete(), []string{ds, "--where", "x = 1", "--records", "1"}},
		"leave it out with --where":          {Select(), []string{ds, "--where", "x = 1", "--of", "1"}},
		"record 100: generation 1 has 100":   {Delete(), []string{ds, "--records", "3,0-100"}},
		"record 99999999999: generation 1":   {Delete(), []string{ds, "--records", "0-99999999999"}},
		"record 3 is given twice":            {Delete(), []string{ds, "--records", "1-5,3"}},
		"is neither a number nor a range":    {Delete(), []string{ds, "--records", "5-1"}},
		"nor a file":                         {Delete(), []string{ds, "--records", "none.txt"}},
		"keeps no generation 7":              {Delete(), []string{ds, "--records", "1", "--of", "7"}},
		"has no tag":                         {Delete(), []string{ds, "--records", "1", "--of", "none"}},
		"is the number of a generation":      {Delete(), []string{ds, "--records", "1", "--of=-1"}},
		"all records would be deleted":       {Delete(), []string{ds, "--records", "0-99"}},
		"needs DATASET":                      {Select(), []string{"--where", "x = 1"}},
		"there is no field":                  {Delete(), []string{ds, "--where", "y = 1"}},
		"no record of it is to be deleted":   {Delete(), []string{ds, "--where", "x < 0"}},
		"would be deleted, and a dataset":    {Select(), []string{ds, "--where", "x < 0"}},
		"none of these records is deleted":   {Restore(), []string{"--deleted", ds}},
		"give --deleted, too":                {Restore(), []string{ds, "--where", "x = 1"}},
		"--records needs --of":               {Restore(), []string{"--deleted", ds, "--records", "3"}},
		"--of is a generation, for":          {Restore(), []string{"--deleted", ds, "--of", "1"}},
		"@1: only the newest generation can": {Restore(), []string{"--deleted", ds + "@1"}},
		"only the newest generation can be":  {Delete(), []string{ds + "@1", "--where", "x = 1"}},
		"no such file":                       {Delete(), []string{ds + "nothing", "--where", "x = 1"}},
	} {
		if code, out, diag := runChange(t, try.cmd, try.args...); code == 0 || !strings.Contains(diag, want) {
			t.Errorf("%q: code %d: %s%s, want %q", try.args, code, out, diag, want)
		}
	}
	if m, err := store.ReadManifest(ds); err != nil || m.Generation != 1 {
		t.Errorf("a refused command has changed the dataset: %v", err)
	}
}

// Numbers of records are those of a generation: of the newest one, or that of --of.
func TestRecordsByNumber(t *testing.T) {
	ds, flags := numbersFrom0(t), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(flags, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	array := string(layout.Header(tensor.Spec{DType: tensor.Int16}, 2)) + "\x04\x00\x01\x00"
	for _, step := range []struct {
		cmd  *cobra.Command
		args []string
		want []int // the places of the first records
	}{
		{Delete(), []string{ds, "--records", "0, 2-3,70-99"}, []int{1, 4, 5, 6, 7}},
		{Delete(), []string{ds, "--records", file("lines.txt", "1\r\n\n3")}, []int{1, 5, 7, 8, 9}},
		{Delete(), []string{ds, "--records", file("a.npy", array)}, []int{1, 7, 8, 10, 11}},
		{Delete(), []string{ds, "--records", "0,1", "--of", "1"}, []int{7, 8, 10, 11, 12}},
		{Select(), []string{ds, "--records", "0,2-4"}, []int{7, 10, 11, 12}},
		{Restore(), []string{"--deleted", ds}, []int{0, 1, 2, 3}},
		{Select(), []string{ds, "--records", "99,1"}, []int{1, 99}},
	} {
		code, out, diag := runChange(t, step.cmd, step.args...)
		if code != 0 {
			t.Fatalf("%q: code %d: %s%s", step.args, code, out, diag)
		}
		if got := placesOf(t, ds); !slices.Equal(got[:len(step.want)], step.want) {
			t.Errorf("%q: %d, want %d", step.args, got, step.want)
		}
	}
	by := (&choiceFlags{records: "-", of: "2"}).commandOf("penstock delete", "ds")
	if by != "penstock delete ds --records - --of 2" {
		t.Errorf("the log shows %q", by)
	}
	for text, want := range map[string]string{
		"":         "no number",
		"1\nx\n":   `line 2: "x" is not the number`,
		"-1":       "record -1: ",
		array[:99]: "header: ",
		string(layout.Header(tensor.Spec{DType: tensor.Uint64}, 1)) + strings.Repeat("\xff", 8): "element 0 of 1: " +
			"18446744073709551615 is larger than any number of a record",
		array[:len(array)-1]: "element 1 of 2",
		string(layout.Header(tensor.Spec{DType: tensor.Float32}, 2)):                "numbers of records are integers",
		string(layout.Header(tensor.Spec{DType: tensor.Int64}, 1<<50)):              "more numbers than records",
		string(layout.Header(tensor.Spec{DType: tensor.Int64, Shape: []int{2}}, 1)): "of one dimension",
		strings.Repeat("1\n", 101): "more numbers than records",
	} {
		code, out, diag := runChange(t, Delete(), ds, "--records", file("wrong", text))
		if code == 0 || !strings.Contains(diag, want) {
			t.Errorf("%q: code %d: %s%s, want %q", text, code, out, diag, want)
		}
	}
}

// placesOf returns where the records of a dataset are stored.
func placesOf(t *testing.T, path string) (list []int) {
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	for i := range ds.Len() {
		list = append(list, ds.Stored(i))
	}
	return list
}

// A file URL is the path of a folder. Stores that do not keep writers apart are refused before a request.
func TestURLs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a path of Windows is not that of a file URL")
	}
	url := "file://" + filepath.ToSlash(numbersFrom0(t))
	if code, out, diag := runChange(t, Delete(), url, "--where", "x < 10"); code != 0 || !strings.Contains(out, "deleted 10 records") {
		t.Errorf("code %d: %s%s", code, out, diag)
	}
	if code, out, diag := runChange(t, Restore(), url+"@1"); code != 0 || !strings.Contains(out, "generation 3") {
		t.Errorf("code %d: %s%s", code, out, diag)
	}
	if code, out, diag := runChange(t, Log(), url); code != 0 || strings.Count(out, "\n") != 3 {
		t.Errorf("code %d: %s%s", code, out, diag)
	}
	for want, try := range map[string]struct {
		cmd  *cobra.Command
		args []string
	}{
		"names no generation":        {Restore(), []string{"s3://bucket/ds"}},
		"https:// are not changed":   {Restore(), []string{"https://host.invalid/ds@1"}},
		"hdfs:// are not changed":    {Prune(), []string{"hdfs://host.invalid/ds"}},
		"hf:// are not changed":      {Tag(), []string{"hf://datasets/a/b/ds", "x"}},
		"only the newest generation": {Delete(), []string{url + "@1", "--where", "x = 1"}},
	} {
		if code, out, diag := runChange(t, try.cmd, try.args...); code == 0 || !strings.Contains(diag, want) {
			t.Errorf("%q: code %d: %s%s, want %q", try.args, code, out, diag, want)
		}
	}
}
