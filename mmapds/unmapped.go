package mmapds

import (
	"fmt"
	"io"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
)

// mostMapped is how many files of a dataset are mapped. Linux lets a process have 65,530 mappings (vm.max_map_count), and the Go
// runtime ends the process where it does not get one of its own.
const mostMapped = 1 << 15

// unmapped reads the files of a dataset that has more than mostMapped. Each read opens its file and closes it again, since a
// process may not have as many descriptors either.
type unmapped struct {
	folder string // see vfs.OpenIn
}

// tooMany reports whether columns have more files than are mapped.
func tooMany(columns []layout.Column, most int) bool {
	files := 0
	for i := range columns {
		if !columns[i].Packed {
			files += len(columns[i].Extents)
		}
	}
	return files > most
}

// ReadAt fills p with bytes of a file.
func (u unmapped) ReadAt(path string, p []byte, off int64) error {
	f, err := vfs.OpenIn(u.folder, path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.ReadAt(p, off); err == io.EOF {
		return fmt.Errorf("%s: the file ends before byte %d: it was truncated", path, off+int64(len(p)))
	} else if err != nil {
		return err
	}
	return nil
}

// Prefetch does nothing: a read is one system call for the rows of a file, which waits for the disk.
func (u unmapped) Prefetch([]Range) {}
