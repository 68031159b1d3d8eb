package layout

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/shell"
)

// maxHDF5Text limits the memory that the manifest in a file can take, as a hostile file can claim any length.
const maxHDF5Text = 1 << 30

// HDF5Text returns the text of a dataset that is one string.
func HDF5Text(file *meta.File, path string) ([]byte, error) {
	data, err := file.Dataset(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	v, err := data.Value(maxHDF5Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text, ok := v.Text()
	if !ok {
		return nil, fmt.Errorf("%s is not a text: %w", path, ErrCorrupt)
	}
	return []byte(text), nil
}

// OpenHDF5File reads the metadata of the HDF5 file at path, which has size bytes. The generation is "" or the number
// that the manifest of the file has: the file has no other generation.
func OpenHDF5File(path string, f io.ReaderAt, size int64, generation string) (*meta.File, error) {
	file, err := meta.Open(f, size)
	if err != nil || generation == "" {
		return file, err
	}
	manifest, err := HDF5Text(file, HDF5Manifest)
	if err != nil {
		return nil, fmt.Errorf("penstock did not write it, so it has no generations: %w", ErrUnsupported)
	}
	var m struct{ Generation int }
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", HDF5Manifest, err, ErrCorrupt)
	}
	if generation != strconv.Itoa(m.Generation) {
		return nil, OneGeneration(path)
	}
	return file, nil
}

// OneGeneration returns the error for a request of another generation, or of the list of generations, of a dataset in
// an HDF5 file. It is ErrUnsupported.
func OneGeneration(path string) error {
	return fmt.Errorf("HDF5 has one generation; flat datasets keep several, and this makes one: %s: %w",
		shell.Rewrite(path, ""), ErrUnsupported)
}
