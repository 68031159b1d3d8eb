package source

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
)

// ErrVersioned marks the folder of a table with a log of versions.
var ErrVersioned = errors.New("its folder also holds rows that were deleted or replaced")

// versioned are the formats of tables with a log of versions. Their folders keep the files of earlier versions, with
// rows that were deleted or replaced, and only the log says which files the table has now.
var versioned = []struct {
	mark string // a glob of what the folder of a table holds
	name string
	code string // a program of Python that writes the present rows of the table, its first argument
	file bool   // the argument is the newest file that the glob matches, not the folder
}{
	{"_delta_log", "a Delta table", `import sys, deltalake, pyarrow.parquet as p; ` +
		`p.write_table(deltalake.DeltaTable(sys.argv[1]).to_pyarrow_table(), "table.parquet")`, false},
	{"metadata/*.metadata.json", "an Iceberg table", `import sys, pyiceberg.table as t, pyarrow.parquet as p; ` +
		`p.write_table(t.StaticTable.from_metadata(sys.argv[1]).scan().to_arrow(), "table.parquet")`, true},
	{".hoodie*", "a Hudi table", `import sys, pyspark.sql as s; s.SparkSession.builder.getOrCreate()` +
		`.read.format("hudi").load(sys.argv[1]).write.parquet("table.parquet")`, false},
	{"_versions/*.manifest", "a Lance dataset", `import sys, lance, pyarrow.parquet as p; ` +
		`p.write_table(lance.dataset(sys.argv[1]).to_table(), "table.parquet")`, false},
}

// refuseVersioned returns an error if a folder is a table with a log of versions, or the partitions of one: kind=a, or
// data in Iceberg.
func refuseVersioned(folder string) error {
	for dir := filepath.Clean(folder); ; dir = filepath.Dir(dir) {
		entries, err := vfs.Glob(filepath.Join(Escape(dir), "*")) // once: in a bucket, each look is a request
		if err != nil {
			return nil // whoever reads the folder says so
		}
		for _, v := range versioned {
			first, _, _ := strings.Cut(v.mark, "/")
			marks := func(path string) bool { ok, _ := filepath.Match(first, filepath.Base(path)); return ok }
			if !slices.ContainsFunc(entries, marks) {
				continue
			}
			found, err := vfs.Glob(filepath.Join(Escape(dir), filepath.FromSlash(v.mark)))
			if err != nil || len(found) == 0 {
				continue
			}
			argument := dir
			if v.file {
				argument = slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })
			}
			// The name is a stranger's: it is an argument that the shell does not read, and no part of the program.
			return fmt.Errorf("is %s, and %w; write its present rows, and give table.parquet: %s", v.name, ErrVersioned,
				cmp.Or(shell.Command("python -c", v.code, filepath.ToSlash(argument)), v.name+" whose name can be printed"))
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
