package generations

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/testkit/datasettest"
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

func run(t *testing.T, cmd *cobra.Command, args ...string) (code int, stdout, stderr string) {
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
		{Restore(), []string{"--deleted", ds}, 100},
		{Restore(), []string{ds + "@2"}, 90},
	} {
		code, out, diag := run(t, step.cmd, step.args...)
		if m, err := store.ReadManifest(ds); code != 0 || err != nil || m.Live() != step.records {
			t.Fatalf("%q: code %d, %d records, want %d: %s%s%v", step.args, code, m.Live(), step.records, out, diag, err)
		}
	}
	code, out, _ := run(t, Delete(), "--json", ds, "--where", "x = 89")
	var made Changed
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil || made.Changed != 1 || made.Records != 89 || made.Deleted != 11 {
		t.Errorf("%s: %v", out, err)
	}
	if _, out, _ := run(t, Log(), ds); !strings.Contains(out, "delete 10 records") || !strings.Contains(out, " --where 'x = 89'") {
		t.Errorf("log: %s", out)
	}
}

func TestDeleteRefuses(t *testing.T) {
	ds := numbersFrom0(t)
	for want, try := range map[string]struct {
		cmd  *cobra.Command
		args []string
	}{
		"needs --where":                     {Delete(), []string{ds}},
		"needs DATASET":                     {Select(), []string{"--where", "x = 1"}},
		"there is no field":                 {Delete(), []string{ds, "--where", "y = 1"}},
		"no record of it is to be deleted":  {Delete(), []string{ds, "--where", "x < 0"}},
		"all records would be deleted":      {Select(), []string{ds, "--where", "x < 0"}},
		"none of these records is deleted":  {Restore(), []string{"--deleted", ds}},
		"give --deleted, too":               {Restore(), []string{ds, "--where", "x = 1"}},
		"changes the newest generation":     {Restore(), []string{"--deleted", ds + "@1"}},
		"only the newest generation can be": {Delete(), []string{ds + "@1", "--where", "x = 1"}},
		"no such file":                      {Delete(), []string{ds + "nothing", "--where", "x = 1"}},
	} {
		if code, out, diag := run(t, try.cmd, try.args...); code == 0 || !strings.Contains(diag, want) {
			t.Errorf("%q: code %d: %s%s, want %q", try.args, code, out, diag, want)
		}
	}
	if m, err := store.ReadManifest(ds); err != nil || m.Generation != 1 {
		t.Errorf("a refused command has changed the dataset: %v", err)
	}
}

// A file URL is the path of a folder. Stores that do not keep writers apart are refused before a request.
func TestURLs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a path of Windows is not that of a file URL")
	}
	url := "file://" + filepath.ToSlash(numbersFrom0(t))
	if code, out, diag := run(t, Delete(), url, "--where", "x < 10"); code != 0 || !strings.Contains(out, "deleted 10 records") {
		t.Errorf("code %d: %s%s", code, out, diag)
	}
	if code, out, diag := run(t, Restore(), url+"@1"); code != 0 || !strings.Contains(out, "generation 3") {
		t.Errorf("code %d: %s%s", code, out, diag)
	}
	if code, out, diag := run(t, Log(), url); code != 0 || strings.Count(out, "\n") != 3 {
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
		if code, out, diag := run(t, try.cmd, try.args...); code == 0 || !strings.Contains(diag, want) {
			t.Errorf("%q: code %d: %s%s, want %q", try.args, code, out, diag, want)
		}
	}
}
