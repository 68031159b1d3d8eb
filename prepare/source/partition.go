package source

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
)

// Partitioned are the kinds whose files may lie in folders that name column values, as Hive, Spark, Polars and
// pyarrow write them: kind=a/year=2020/0.parquet.
var Partitioned = []string{"csv", "jsonl", "parquet", "arrow"}

// NullPartition is the folder name that Hive and Spark write for a null.
const NullPartition = "__HIVE_DEFAULT_PARTITION__"

// Partition is a column value that a folder name gives to all rows of the files in the folder.
type Partition struct{ Column, Value string }

// PartitionFiles returns the files in the partitions of a folder, sorted by path. It returns nil if the folder has
// no partitions, or if the files are of a kind without partitions. Folders may be links: a folder that is its own
// ancestor is not entered again, so a circle of links ends.
func PartitionFiles(root *vfs.Root, folder string) (files []string) {
	var walk func(dir, pattern string, above []fs.FileInfo)
	walk = func(dir, pattern string, above []fs.FileInfo) {
		for _, path := range root.Glob(dir, pattern) {
			name := filepath.Base(path)
			info, err := root.Stat(path)
			inCircle := func(f fs.FileInfo) bool { return os.SameFile(f, info) }
			switch {
			case IsHidden(name) || strings.HasPrefix(name, "_"): // such as _SUCCESS and _metadata
			case err == nil && info.IsDir() && !slices.ContainsFunc(above, inCircle):
				walk(path, "*", append(slices.Clone(above), info))
			case err != nil || info.IsDir() || pattern == "*": // those who open it say why it cannot be read
				files = append(files, path)
			}
		}
	}
	var above []fs.FileInfo
	if info, err := root.Stat(folder); err == nil {
		above = append(above, info)
	}
	walk(folder, "*=*", above)
	if files == nil || !slices.Contains(Partitioned, DetectFile(root, files[0])) {
		return nil
	}
	slices.Sort(files)
	return files
}

// PartitionsOf returns the partitions of a file below folder, the outermost first. Names are percent-decoded, as
// writers percent-encode characters that file systems refuse.
func PartitionsOf(folder, file string) (list []Partition, err error) {
	inside, err := filepath.Rel(folder, filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(filepath.ToSlash(inside), "/") {
		column, value, is := strings.Cut(name, "=")
		if !is {
			continue
		}
		p := Partition{}
		if p.Column, err = url.PathUnescape(column); err == nil {
			p.Value, err = url.PathUnescape(value)
		}
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", name, err)
		}
		list = append(list, p)
	}
	return list, nil
}
