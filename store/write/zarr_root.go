package write

import (
	"encoding/json"
	"os"
	"path"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Names in a dataset in Zarr: of the group of what is not a field, and of the array of bytes that is the manifest.
const (
	metadataGroup = "penstock"
	zarrManifest  = metadataGroup + "/manifest"
)

// ZarrRoot is the part of a dataset in Zarr that each generation has of its own: its manifest, the metadata of the
// manifest's array, and the metadata of the root, which includes that of all arrays. Other programs read these
// arrays.
type ZarrRoot struct{ Manifest, Node, Root []byte }

// EncodeZarrRoot enters the checksums of its metadata into m and returns the files. Nodes are the metadata of all
// groups and arrays but the root and the manifest, by path.
func EncodeZarrRoot(m *store.Manifest, nodes map[string]json.RawMessage) (r *ZarrRoot, err error) {
	node := zarrManifest + "/" + layout.ZarrNode
	// the checksums of both depend on the length of the manifest only, and so not on each other
	m.Metadata[layout.ZarrNode], m.Metadata[node] = layout.HexCRC(0), layout.HexCRC(0)
	r = new(ZarrRoot)
	if r.Manifest, err = m.Encode(); err != nil {
		return nil, err
	}
	n := int64(len(r.Manifest))
	r.Node, err = zarr.EncodeArray(tensor.Spec{DType: tensor.Uint8}, n, zarr.Grid{Chunk: n}, nil, struct{}{})
	if err != nil {
		return nil, err
	}
	nodes[zarrManifest] = r.Node
	attributes := map[string]any{"format": m.Format, "format_version": m.Version, "num_samples": m.Records}
	if len(m.Arrays) > 0 {
		attributes["arrays"] = m.Arrays
	}
	if r.Root, err = zarr.EncodeGroup(attributes, nodes); err != nil {
		return nil, err
	}
	m.Metadata[layout.ZarrNode] = layout.HexCRC(layout.CRC32C(r.Root))
	m.Metadata[node] = layout.HexCRC(layout.CRC32C(r.Node))
	r.Manifest, err = m.Encode()
	return r, err
}

// zarrRoot is EncodeZarrRoot for a generation whose arrays are in the folder.
func zarrRoot(root *os.Root, m *store.Manifest) (*ZarrRoot, error) {
	nodes := make(map[string]json.RawMessage)
	for name := range m.Metadata {
		if layout.OfNewest(name) {
			continue
		}
		text, err := root.ReadFile(name)
		if err != nil {
			return nil, err
		}
		nodes[path.Dir(name)] = text
	}
	return EncodeZarrRoot(m, nodes)
}

// replaceRoot makes the metadata of a folder that of its newest generation. Each file is replaced in one step, and the
// manifest comes after this: readers of penstock use the others only if they belong to it.
func replaceRoot(root *os.Root, m *store.Manifest) error {
	r, err := zarrRoot(root, m)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{layout.ZarrNode, r.Root}, {zarrManifest + "/" + layout.ZarrNode, r.Node}} {
		temporary := layout.Generations + "/." + RandomTag() + ".now"
		if err := writeSynced(root, temporary, f.text); err != nil {
			return err
		}
		if err := root.Rename(temporary, f.name); err != nil {
			return err
		}
	}
	return SyncRoot(root)
}
