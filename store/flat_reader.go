package store

import (
	"fmt"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
)

// maxManifest bounds the memory that opening a dataset can take.
const maxManifest = 1 << 30

// maxTag bounds the file of a tag.
const maxTag = 1 << 16

// OpenFlat reads the manifest of a flat dataset and checks every file's size and header
// against it. It does not read payloads: see the verification of package mmapds.
//
// A fault in a file is ErrCorrupt, a manifest of a newer version ErrUnsupported, a folder
// without manifest fs.ErrNotExist.
//
// The path may end with a generation, as ds@3 or ds@TAG does; otherwise it is the newest.
func OpenFlat(path string) (*Dataset, error) {
	folder, generation, _ := layout.SplitGeneration(path)
	return openFlat(folder, generation)
}

func openFlat(path, generation string) (*Dataset, error) {
	m, err := readGeneration(path, generation)
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	if err := layout.CheckShards(vfs.Folder(path), m.Schema().Specs(), m.Shards); err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	return newFlat(path, m), nil
}

// readFlat is OpenFlat for a folder that need not be one of the system's, whose manifest holds
// data. It looks at no other file: what is read there must be compared with the checksums.
func readFlat(path string, data []byte) (*Dataset, error) {
	m, err := DecodeManifest(data)
	if err == nil && len(m.Shards) == 0 {
		err = fmt.Errorf("it lists no shards: %w", ErrCorrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %s: %w", path, layout.ManifestName, err)
	}
	return newFlat(path, m), nil
}

func newFlat(path string, m *Manifest) *Dataset {
	d := &Dataset{Path: path, Format: "flat", Schema: m.Schema(), Records: m.Records, Manifest: m}
	d.layout.Columns = layout.ColumnsOf(m.Schema().Specs(), m.Shards, path)
	return d
}

// ReadManifest reads and checks the manifest of the dataset at path, and none of its arrays. The path may end with a
// generation, as in OpenFlat.
func ReadManifest(path string) (*Manifest, error) {
	folder, generation, _ := layout.SplitGeneration(path)
	return readGeneration(folder, generation)
}
