package write

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Names in a dataset in Zarr: the group of everything that is not a field, and the array of bytes that is the manifest.
const (
	metadataGroup = "penstock"
	zarrManifest  = metadataGroup + "/manifest"
	manifestNode  = zarrManifest + "/" + layout.ZarrNode
)

// ZarrRoot is the part of a dataset in Zarr that each generation has of its own: its manifest, the metadata of the
// manifest's array, and the metadata of the root, which includes the metadata of all arrays. Other programs find the
// generation's arrays by the root.
type ZarrRoot struct{ Manifest, Node, Root []byte }

// EncodeZarrRoot returns the files of a generation, and enters the checksums of its metadata into m. nodes is the
// metadata of all groups and arrays but the root and the manifest, by path.
func EncodeZarrRoot(m *store.Manifest, nodes map[string]json.RawMessage) (*ZarrRoot, error) {
	// both checksums depend only on the manifest's length, which placeholders of the same length fix
	m.Metadata[layout.ZarrNode], m.Metadata[manifestNode] = layout.HexCRC(0), layout.HexCRC(0)
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	r, err := describe(m, len(text), nodes)
	if err != nil {
		return nil, err
	}
	for _, f := range r.metadata() {
		m.Metadata[f.Name] = layout.HexCRC(layout.CRC32C(f.Text))
	}
	r.Manifest, err = m.Encode()
	return r, err
}

// describe returns the metadata of a manifest of n bytes, and of the root.
func describe(m *store.Manifest, n int, nodes map[string]json.RawMessage) (r *ZarrRoot, err error) {
	r = new(ZarrRoot)
	r.Node, err = zarr.EncodeArray(tensor.Spec{DType: tensor.Uint8}, int64(n), zarr.Grid{Chunk: int64(n)}, nil, struct{}{})
	if err != nil {
		return nil, err
	}
	nodes[zarrManifest] = r.Node
	attributes := map[string]any{"format": m.Format, "format_version": m.Version, "num_samples": m.Records}
	if len(m.Arrays) > 0 {
		attributes["arrays"] = m.Arrays
	}
	r.Root, err = zarr.EncodeGroup(attributes, nodes)
	return r, err
}

// metadata returns the files of metadata, which are replaced before the manifest.
func (r *ZarrRoot) metadata() []NewestFile {
	return []NewestFile{{layout.ZarrNode, r.Root}, {manifestNode, r.Node}}
}

// files returns all files, in the order in which they are replaced.
func (r *ZarrRoot) files() []NewestFile {
	return append(r.metadata(), NewestFile{layout.ZarrManifest, r.Manifest})
}

// NewestFile is a file of a dataset that each generation replaces. Other programs read it, as they know no generations.
type NewestFile struct {
	Name string
	Text []byte
}

// EncodeGeneration returns the files that a generation replaces, in the order in which they are replaced: the manifest
// is the last one, so that a reader who finds the new manifest finds its metadata, too. folder has the files that m
// lists. Readers of penstock use the other files only if they match the manifest's checksums.
func EncodeGeneration(folder fs.FS, m *store.Manifest) ([]NewestFile, error) {
	if m.Metadata == nil {
		text, err := m.Encode()
		return []NewestFile{{layout.ManifestName, text}}, err
	}
	m.Metadata = maps.Clone(m.Metadata)
	nodes, err := readNodes(folder, m)
	if err != nil {
		return nil, err
	}
	r, err := EncodeZarrRoot(m, nodes)
	if err != nil {
		return nil, err
	}
	return r.files(), nil
}

// FilesOf is EncodeGeneration for a generation that exists, with the text of its manifest. The error is
// store.ErrCorrupt if metadata in the folder differs from the manifest's checksums.
func FilesOf(folder fs.FS, text []byte) ([]NewestFile, error) {
	m, err := store.DecodeManifest(text)
	if err != nil {
		return nil, err
	}
	if m.Metadata == nil {
		return []NewestFile{{layout.ManifestName, text}}, nil
	}
	nodes, err := readNodes(folder, m)
	if err != nil {
		return nil, err
	}
	r, err := describe(m, len(text), nodes)
	if err != nil {
		return nil, err
	}
	for _, f := range r.metadata() {
		if err := checkNode(m, f.Name, f.Text); err != nil {
			return nil, err
		}
	}
	r.Manifest = text
	return r.files(), nil
}

// ManifestName returns the name of the file with the manifest of the newest generation, in the dataset that m is a
// generation of.
func ManifestName(m *store.Manifest) string {
	if m.Metadata == nil {
		return layout.ManifestName
	}
	return layout.ZarrManifest
}

// nodesAtOnce is how many files of metadata are read at the same time. In a bucket each is a request that waits for the
// network.
const nodesAtOnce = 16

// readNodes reads the metadata of all groups and arrays of a generation, by path.
func readNodes(folder fs.FS, m *store.Manifest) (map[string]json.RawMessage, error) {
	var all errgroup.Group
	all.SetLimit(nodesAtOnce)
	var mu sync.Mutex
	nodes := make(map[string]json.RawMessage)
	for name := range m.Metadata {
		if layout.OfNewest(name) {
			continue
		}
		all.Go(func() error {
			text, err := fs.ReadFile(folder, name)
			if err == nil {
				err = checkNode(m, name, text)
			}
			mu.Lock()
			defer mu.Unlock()
			nodes[path.Dir(name)] = text
			return err
		})
	}
	return nodes, all.Wait()
}

// checkNode compares a file of metadata with the manifest.
func checkNode(m *store.Manifest, name string, text []byte) error {
	if got, want := layout.HexCRC(layout.CRC32C(text)), m.Metadata[name]; got != want {
		return fmt.Errorf("%s: its CRC32C is %s, was %s when it was written: %w", name, got, want, store.ErrCorrupt)
	}
	return nil
}

// replaceMetadata replaces the metadata in a folder of Zarr by the metadata of a generation. The caller replaces the
// manifest afterwards. Each file is replaced by one rename, so a reader finds an old or a new file and never a part of
// one.
func replaceMetadata(root *os.Root, text []byte) error {
	files, err := FilesOf(root.FS(), text)
	if err != nil {
		return err
	}
	for _, f := range files[:len(files)-1] {
		temporary := layout.Generations + "/." + RandomTag() + ".now"
		if err := writeSynced(root, temporary, f.Text); err != nil {
			return err
		}
		if err := root.Rename(temporary, f.Name); err != nil {
			return err
		}
	}
	return SyncRoot(root)
}
