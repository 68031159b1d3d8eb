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

// ErrVersioned marks the folder of a table with a version log.
var ErrVersioned = errors.New("its folder also holds rows that were deleted or replaced")

// versioned has the table formats with a version log. Their folders keep the files of earlier versions, with rows
// that were deleted or replaced, and only the log says which files are current. Reading all files would bring
// deleted rows back.
var versioned = []struct {
	// globs; a folder that matches a glob is such a table. No glob begins with a wildcard, as that would list the
	// folder
	marks []string
	name  string
	code  string // a program of Python that writes the present rows of the table, its first argument
	file  bool   // the argument is the newest file that a glob matches, not the folder
}{
	{[]string{"_delta_log"}, "a Delta table", `import sys, deltalake, pyarrow.parquet as p; ` +
		`p.write_table(deltalake.DeltaTable(sys.argv[1]).to_pyarrow_table(), "table.parquet")`, false},
	{[]string{"metadata/*.metadata.json"}, "an Iceberg table", `import sys, pyiceberg.table as t, pyarrow.parquet as p; ` +
		`p.write_table(t.StaticTable.from_metadata(sys.argv[1]).scan().to_arrow(), "table.parquet")`, true},
	{[]string{".hoodie", ".hoodie_partition_metadata", ".hoodie_partition_metadata.parquet",
		".hoodie_partition_metadata.orc"},
		"a Hudi table", `import sys, pyspark.sql as s; s.SparkSession.builder.getOrCreate()` +
			`.read.format("hudi").load(sys.argv[1]).write.parquet("table.parquet")`, false},
	{[]string{"_versions/*.manifest"}, "a Lance dataset", `import sys, lance, pyarrow.parquet as p; ` +
		`p.write_table(lance.dataset(sys.argv[1]).to_table(), "table.parquet")`, false},
}

// refuseVersioned returns an error if a folder is a table with a version log, or a folder of such a table's files:
// a partition (kind=a), or data in Iceberg. It therefore looks at parent folders as long as the names are of that
// form.
func refuseVersioned(folder string) error {
	for dir := filepath.Clean(folder); ; dir = filepath.Dir(dir) {
		var names []string // of a folder in a bucket, where one list is fewer requests than a look for each mark
		if vfs.Mounted(dir) {
			names, _ = vfs.Glob(filepath.Join(Escape(dir), "*")) // whoever reads the folder reports an error
		}
		for _, v := range versioned {
			var found []string
			for _, mark := range v.marks {
				first, _, _ := strings.Cut(mark, "/")
				if vfs.Mounted(dir) && !slices.Contains(names, filepath.Join(dir, first)) {
					continue
				}
				some, _ := vfs.Glob(filepath.Join(Escape(dir), filepath.FromSlash(mark))) // the patterns are right
				found = append(found, some...)
			}
			if len(found) == 0 {
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

// version returns the number of an Iceberg metadata file: v3.metadata.json or 00003-9fbf6b5e.metadata.json.
func version(path string) int64 {
	name := strings.TrimPrefix(filepath.Base(path), "v")
	digits := name[:len(name)-len(strings.TrimLeft(name, "0123456789"))]
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}
