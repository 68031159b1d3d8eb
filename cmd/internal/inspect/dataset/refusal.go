package dataset

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
)

// notFound is the error of a path that does not exist, with the neighbor that was probably meant.
func notFound(path string) error {
	return fmt.Errorf("%s: no such file or folder%s", path, suggest.Path(path))
}

// samples are the extensions of files that preprocess makes datasets of.
var samples = []string{".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".tar", ".tgz", ".gz", ".zip", ".npy", ".npz", ".zst"}

// notDataset is the error of a file or folder that exists and is not a dataset, with the
// command that makes one of it.
func notDataset(path string) error {
	err := fmt.Errorf("%s: not a dataset (a folder or an HDF5 file)", path)
	info, statErr := os.Stat(path)
	folder := statErr == nil && info.IsDir()
	dest, parts := strings.CutSuffix(filepath.Clean(path), ".parts")
	switch {
	case folder && parts:
		return fmt.Errorf("%w; it holds the parts of one: %s", err, cmp.Or(shell.Command("preprocess merge", dest), "preprocess merge DEST"))
	case folder || slices.Contains(samples, strings.ToLower(filepath.Ext(path))):
		made := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + ".h5"
		return fmt.Errorf("%w; make one: %s", err, cmp.Or(shell.Command("preprocess", path, made), "preprocess SOURCE DEST"))
	}
	return err
}
