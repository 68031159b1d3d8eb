package source

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
)

// ErrVersioned marks the folder of a table with a log of versions.
var ErrVersioned = errors.New("its folder also holds rows that were deleted or replaced")

// versioned are the formats of tables with a log of versions. Their folders keep the files of earlier versions, with
// rows that were deleted or replaced, and only the log says which files the table has now.
var versioned = []struct {
	mark  string // a glob of what the folder of a table holds
	name  string
	write string // how to write the present rows: %[1]s is the folder, %[2]s the newest file that the glob matches
}{
	{"_delta_log", "a Delta table", `python -c 'import deltalake, pyarrow.parquet as p; ` +
		`p.write_table(deltalake.DeltaTable("%[1]s").to_pyarrow_table(), "table.parquet")'`},
	{"metadata/*.metadata.json", "an Iceberg table", `python -c 'import pyiceberg.table as t, pyarrow.parquet as p; ` +
		`p.write_table(t.StaticTable.from_metadata("%[2]s").scan().to_arrow(), "table.parquet")'`},
	{".hoodie*", "a Hudi table", `in PySpark: spark.read.format("hudi").load("%[1]s").write.parquet("table.parquet")`},
	{"_versions/*.manifest", "a Lance dataset", `python -c 'import lance, pyarrow.parquet as p; ` +
		`p.write_table(lance.dataset("%[1]s").to_table(), "table.parquet")'`},
}

// refuseVersioned returns an error if a folder is a table with a log of versions, or the partitions of one: kind=a, or
// data in Iceberg.
func refuseVersioned(folder string) error {
	for dir := filepath.Clean(folder); ; dir = filepath.Dir(dir) {
		for _, v := range versioned {
			found, err := vfs.Glob(filepath.Join(Escape(dir), filepath.FromSlash(v.mark)))
			if err != nil || len(found) == 0 {
				continue
			}
			newest := slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })
			return fmt.Errorf("is %s, and %w; write its present rows, and give table.parquet: %s", v.name, ErrVersioned,
				fmt.Sprintf(v.write, filepath.ToSlash(dir), filepath.ToSlash(newest)))
		}
		if name := filepath.Base(dir); name != "data" && !strings.Contains(name, "=") {
			return nil
		}
	}
}

// version returns the number in the name of a file of metadata of Iceberg: v3.metadata.json or
// 00003-9fbf6b5e.metadata.json.
func version(path string) int64 {
	name := strings.TrimPrefix(filepath.Base(path), "v")
	digits := name[:len(name)-len(strings.TrimLeft(name, "0123456789"))]
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}
