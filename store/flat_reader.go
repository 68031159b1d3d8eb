package store

import (
	"fmt"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
)

// maxManifest limits the memory that a hostile manifest can take.
const maxManifest = 1 << 30

// maxTag limits the size of a tag's file, which has one short JSON object.
const maxTag = 1 << 16

// OpenFlat reads the manifest of a flat dataset and compares every file's size and header with it. After that, every
// record is inside its file: mapping past the end of a truncated file would end the process with a signal at the first
// access. OpenFlat does not read payloads: see the verification of package mmapds.
//
// A damaged file is ErrCorrupt, a manifest of a newer version ErrUnsupported, a folder without a manifest
// fs.ErrNotExist.
//
// The path may end with a generation, as ds@3 or ds@TAG does; otherwise the newest one is opened.
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

// readFlat is OpenFlat for a folder that may be in a bucket, and whose manifest is data. It looks at no other file, so
// the sizes of files are not checked: whoever reads the files must compare the bytes with the checksums.
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
