package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// TestVersionedTablesAreRefused has folders of tables whose logs say which files count: the folder, a partition of it
// and a glob are refused with what writes the present rows. Files that are named one by one are read.
func TestVersionedTablesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		marks []string
		data  string // where the files of rows are
		want  string
	}{
		{"delta", []string{"_delta_log/00000000000000000000.json"}, "kind=a/year=1", "deltalake.DeltaTable("},
		{"iceberg", []string{"metadata/00009-a.metadata.json", "metadata/00010-b.metadata.json"}, "data/kind=a",
			`metadata/00010-b.metadata.json`},
		{"hudi", []string{".hoodie/hoodie.properties", "2024/01/.hoodie_partition_metadata"}, "2024/01", `format("hudi")`},
		{"lance", []string{"_versions/1.manifest"}, "data", "lance.dataset("},
	} {
		table := filepath.Join(t.TempDir(), c.name)
		for _, name := range append(c.marks, c.data+"/0.parquet", c.data+"/1.parquet") {
			path := filepath.Join(table, filepath.FromSlash(name))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte("PAR1"), 0o644))
		}
		data := filepath.Join(table, filepath.FromSlash(c.data))
		for _, path := range []string{table, data, filepath.Join(data, "*.parquet")} {
			if _, err := Detect(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want what has %s", path, err, c.want)
			}
		}
		strange := filepath.Join(t.TempDir(), `x'; touch made; "'`)
		require.NoError(t, os.Rename(table, strange))
		quoted := `'` + strings.ReplaceAll(strange, `'`, `'\''`)
		if _, err := Detect(strange); err == nil || !strings.Contains(err.Error(), quoted) {
			t.Errorf("%s: the command of error %v does not have the word %s", c.name, err, quoted)
		}
		require.NoError(t, os.Rename(strange, table))
		if kind, err := Detect(filepath.Join(data, "1.parquet")); kind != "parquet" || err != nil {
			t.Errorf("%s: a file that is named: kind %q, error %v", c.name, kind, err)
		}
	}
}
