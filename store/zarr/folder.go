package zarr

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	format "github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// folder writes the folder of a dataset in Zarr.
type folder struct {
	stage    *write.Stage
	opts     *Options
	base     *base // the dataset that is appended to; nil for a new one
	manifest *store.Manifest
	nodes    map[string]json.RawMessage // by path
}

// write writes the complete folder: the parts, after the rows of the base, and the manifest last, as it has the
// checksums of all metadata. Afterwards the names in every folder are synced.
func (f *folder) write(parts [][]layout.Column) error {
	f.manifest.Metadata, f.nodes = make(map[string]string), make(map[string]json.RawMessage)
	all := parts
	if f.base != nil {
		all = append([][]layout.Column{layout.Of(f.base.data).Columns}, parts...)
	}
	if err := f.stage.Folder.Root().Mkdir(stagedName, 0o777); err != nil {
		return err
	}
	if err := f.groups(); err != nil {
		return err
	}
	columns := write.ConcatColumns(all)
	for k, g := range grids(f.manifest.Schema(), columns, f.opts, f.base) {
		if err := f.array(&columns[k], g, parts, k); err != nil {
			return err
		}
	}
	if err := f.writeManifest(); err != nil {
		return err
	}
	for path := range f.nodes {
		if err := f.sync(path); err != nil {
			return err
		}
	}
	return f.sync("")
}

// writeManifest writes the manifest, as an array of bytes, and the root.
func (f *folder) writeManifest() error {
	r, err := write.EncodeZarrRoot(f.manifest, f.nodes)
	if err != nil {
		return err
	}
	if err := f.node(metadataGroup+"/manifest", r.Node); err != nil {
		return err
	}
	if err := f.metadata("", r.Root); err != nil {
		return err
	}
	return f.stage.Folder.WriteFile(staged(layout.ZarrManifest), r.Manifest)
}

// sync waits until the names in a folder are on disk.
func (f *folder) sync(path string) error {
	root, err := f.stage.Folder.Root().OpenRoot(staged(path))
	if err != nil {
		return err
	}
	return errors.Join(write.SyncRoot(root), root.Close())
}

// groups makes the group of metadata, the groups of ragged fields, and the groups above fields whose names are paths.
func (f *folder) groups() error {
	paths := []string{metadataGroup, metadataGroup + "/crc"}
	for _, field := range f.manifest.Fields {
		for above := range layout.Groups(field.Name) {
			paths = append(paths, above)
		}
		if field.Ragged {
			paths = append(paths, field.Name)
		}
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if err := f.group(path); err != nil {
			return err
		}
	}
	return nil
}

// group makes the folder and metadata of a group.
func (f *folder) group(path string) error {
	text, err := format.EncodeGroup(struct{}{}, nil)
	if err != nil {
		return err
	}
	return f.node(path, text)
}

// node makes the folder of a group or array, with its metadata.
func (f *folder) node(path string, text []byte) error {
	f.nodes[path] = text
	if err := f.stage.Folder.Root().Mkdir(staged(path), 0o777); err != nil {
		return err
	}
	return f.metadata(path, text)
}

func (f *folder) metadata(path string, text []byte) error {
	name := strings.TrimPrefix(path+"/"+layout.ZarrNode, "/")
	f.manifest.Metadata[name] = layout.HexCRC(layout.CRC32C(text))
	return f.stage.Folder.WriteFile(staged(name), text)
}

// array writes column k of the parts, after the rows of the base, and the column's checksums.
func (f *folder) array(c *layout.Column, g format.Grid, parts [][]layout.Column, k int) error {
	path, err := f.arrayNode(c, g)
	if err != nil {
		return err
	}
	a := &array{
		stage: f.stage, opts: f.opts, base: f.base,
		meta: c, grid: g, path: path, left: g.Shard, blocks: write.NewBlockSums(c.Spec.RecordBytes()),
	}
	if err := a.write(parts, k); err != nil {
		return err
	}
	if g.Zstd > 0 {
		write.AddStorage(f.manifest, c.Name, &store.Storage{
			Filter: "zstd", Level: g.Zstd, ChunkRows: g.Chunk, Bytes: c.Rows * int64(c.Spec.RecordBytes()), Stored: a.stored,
			Encoder: "klauspost/compress", Reason: "as was asked for",
		})
	}
	return f.sums(c.SumsPath()[1:], a.sums)
}

// arrayNode makes the folder of a column, with its metadata.
func (f *folder) arrayNode(c *layout.Column, g format.Grid) (path string, err error) {
	field := f.manifest.Fields[c.Field]
	text, err := format.EncodeArray(c.Spec, c.Rows, g, dimensions(field, c, f.manifest.Fields), attributes(field, c))
	if err != nil {
		return "", err
	}
	path = c.Path()[1:]
	return path, f.node(path, text)
}

// sums writes an array of checksums, which is one chunk, so that a reader gets them with one request.
func (f *folder) sums(path string, sums []uint32) error {
	n := int64(len(sums))
	text, err := format.EncodeArray(tensor.Spec{DType: tensor.Uint32}, n, format.Grid{Chunk: max(1, n)}, nil, struct{}{})
	if err != nil {
		return err
	}
	if err := f.node(path, text); err != nil || n == 0 {
		return err
	}
	var b []byte
	for _, sum := range sums {
		b = binary.LittleEndian.AppendUint32(b, sum)
	}
	return f.stage.Folder.WriteFile(staged(path+"/"+shardName(0, 0)), b)
}

// dimensions names the axes of a column, like the Python package does for xarray. xarray takes axes of one name for one
// dimension of the group, and refuses a group in which they differ in length, so an axis of only one array is named
// after that array. An axis that has a name keeps the name.
func dimensions(f store.Field, c *layout.Column, all []store.Field) []string {
	switch c.Part {
	case layout.Offsets:
		return []string{"offset"}
	case layout.Values:
		return append([]string{"row"}, axes(f.Name, f.Layout, c.Spec.Shape)...)
	}
	list := append([]string{"record"}, axes(f.Name, f.Layout, c.Spec.Shape)...)
	for k := range f.Dims {
		if k > 0 && f.Dims[k] != "" && ofOneLength(f, k, all) {
			list[k] = f.Dims[k]
		}
	}
	return list
}

// ofOneLength reports whether all axes with the name of axis k of a field have one length.
func ofOneLength(f store.Field, k int, all []store.Field) bool {
	for _, g := range all {
		for i := 1; i < len(g.Dims); i++ {
			if g.Dims[i] == f.Dims[k] && (g.Shape[i-1] != f.Shape[k-1] || g.Name == f.Name && i != k) {
				return false
			}
		}
	}
	return true
}

// axes names the axes of a record. Images get channel, y and x; without a layout, axes are numbered.
func axes(name, layout string, shape tensor.Shape) (list []string) {
	names := map[string][]string{tensor.CHW: {"channel", "y", "x"}, tensor.HWC: {"y", "x", "channel"}}[layout]
	for i := range shape {
		axis := fmt.Sprintf("dim_%d", i+1)
		if len(names) == len(shape) {
			axis = names[i]
		}
		list = append(list, name+"_"+axis)
	}
	return list
}

// attributes returns the Zarr attributes of a field, or of the values of a ragged field, under the names that HDF5
// files of penstock have for them.
func attributes(f store.Field, c *layout.Column) map[string]any {
	list := make(map[string]any)
	if c.Part == layout.Offsets {
		return list
	}
	if f.Layout != "" {
		list["layout"] = "N" + f.Layout
	}
	if f.Content != "" {
		list["content"] = f.Content
	}
	if f.Image != "" {
		list["image"] = f.Image
	}
	if f.Instances != "" {
		list["instances"] = f.Instances
	}
	if f.DType == tensor.BFloat16 {
		list["dtype"] = f.DType.String()
	}
	if len(f.Classes) > 0 {
		list["class_names"] = f.Classes
	}
	if n := f.Normalization; n != nil {
		list["mean"], list["std"], list["scale"], list["normalization_applied"] = n.Mean, n.Std, n.Scale, n.Applied
	}
	return list
}
