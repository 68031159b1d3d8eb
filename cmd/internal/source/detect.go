package source

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Detect reports the kind of a source from what is there, not from names alone.
func Detect(path string) (string, error) {
	files, err := Files(path)
	if err != nil {
		return "", err
	}
	info, err := vfs.Stat(files[0])
	if err != nil {
		return "", fmt.Errorf("source %s: %w", path, WithoutPath(err))
	}
	if info.IsDir() {
		for _, pattern := range []string{"*.arrow", "dataset_dict.json"} { // of datasets.save_to_disk
			if found, _ := vfs.Glob(filepath.Join(Escape(files[0]), pattern)); len(found) > 0 {
				return "", fmt.Errorf("source %s: the folder %s", path, foreign[".arrow"])
			}
		}
		return DetectFolder(files[0]), nil
	}
	if kind := DetectFile(files[0]); kind != "" {
		return kind, nil
	}
	return "", fmt.Errorf("source %s: %s", path, strange(files[0]))
}

// DetectFolder reports what a folder holds; one of images is the usual.
func DetectFolder(path string) string {
	if info, err := vfs.Stat(filepath.Join(path, store.ManifestName)); err == nil && info.Mode().IsRegular() {
		return "flat"
	}
	for _, try := range []struct{ pattern, kind string }{
		{"data_batch_*.bin", "cifar"}, {"test_batch.bin", "cifar"}, {"fine_label_names.txt", "cifar"},
		{"*idx[1-9]-ubyte*", "idx"}, {"*.npy", "npy"}, {"*.parquet", "parquet"}, {"*.tar", "tar"}, {"*.tar.gz", "tar"}, {"*.tar.zst", "tar"},
	} {
		if found, _ := vfs.Glob(filepath.Join(Escape(path), try.pattern)); len(found) > 0 {
			return try.kind
		}
	}
	return "imagefolder"
}

// DetectFile reports the kind of a file by its first bytes, or by its name where they say
// nothing, "" if by neither.
func DetectFile(path string) string {
	long := make([]byte, 512+len(hdf5Magic))
	long = long[:readHead(path, long)]
	head := long[:min(len(long), 512)]
	name := strings.ToLower(filepath.Base(path))
	switch {
	case strings.HasPrefix(string(head), NPYMagic):
		return "npy"
	case strings.HasPrefix(string(head), "PAR1"):
		return "parquet"
	case strings.HasPrefix(string(head), hdf5Magic), len(long) == cap(long) && strings.HasSuffix(string(long), hdf5Magic): // MATLAB's is behind 512 bytes
		return "hdf5"
	case strings.HasPrefix(string(head), "PK\x03\x04") && strings.HasSuffix(name, ".npz"):
		return "npz"
	case isTarHead(head), strings.Contains(name, ".tar"), strings.HasSuffix(name, ".tgz"):
		return "tar"
	case IsIDX(head), strings.Contains(name, "-idx"):
		return "idx"
	case strings.HasSuffix(name, ".bin"):
		return "cifar"
	}
	for _, packed := range []string{".gz", ".zst", ".bz2", ".xz", ".lz4"} {
		name = strings.TrimSuffix(name, packed)
	}
	return ByExtension[filepath.Ext(name)]
}

// isTarHead reports whether a file's first block is a header of tar.
func isTarHead(head []byte) bool { return len(head) >= 262 && string(head[257:262]) == "ustar" }

var ByExtension = map[string]string{
	".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".h5": "hdf5", ".hdf5": "hdf5", ".hdf": "hdf5",
}

const hdf5Magic = "\x89HDF\r\n\x1a\n"

// readHead fills b with the first bytes of a file and returns how many there are.
func readHead(path string, b []byte) int {
	f, err := vfs.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	n, _ := f.Read(b)
	return n
}

const NPYMagic = "\x93NUMPY"

// IsIDX reports whether a file begins as IDX files do.
func IsIDX(head []byte) bool {
	if len(head) < 8 || head[0] != 0 || head[1] != 0 {
		return false
	}
	return strings.IndexByte("\x08\x09\x0b\x0c\x0d\x0e", head[2]) >= 0 && head[3] >= 1 && head[3] < tensor.MaxRank
}
