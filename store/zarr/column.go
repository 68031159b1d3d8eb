package zarr

import (
	"encoding/json"

	"github.com/penstock/penstock/internal/layout"
	format "github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// WriteColumn implements [write.ArrayWriter]: it writes a column of the dataset at path, whose shards are in the
// stage, as arrays. They are cut like the existing ones: in shards of as many records.
func WriteColumn(dataset string, stage *write.Stage, f store.Field, shards []store.Shard, stored string) (
	*write.Arrays, error) {
	data, err := store.OpenZarr(dataset, store.OpenOptions{})
	if err != nil {
		return nil, err
	}
	opts := new(Options)
	if s := storageOf(data.Manifest, f); s != nil {
		opts.Compress = &Compression{Level: s.Level, ChunkRecords: s.ChunkRows}
	}
	schema := store.Schema{Fields: []store.Field{f}}
	m := &store.Manifest{Fields: append(schema.Fields, data.Manifest.Fields...), Metadata: make(map[string]string)}
	to := &folder{stage: stage, opts: opts, manifest: m, nodes: make(map[string]json.RawMessage)}
	if err := stage.Folder.Root().RemoveAll(stagedName); err != nil { // of a commit that was stopped
		return nil, err
	}
	if err := stage.Folder.Root().MkdirAll(staged(metadataGroup+"/crc"), 0o777); err != nil {
		return nil, err
	}
	if f.Ragged {
		if err := to.group(stored); err != nil {
			return nil, err
		}
	}
	parts := [][]layout.Column{layout.ColumnsOf(schema.Specs(), shards, stage.Folder.Through(""))}
	columns := write.ConcatColumns(parts)
	grids := grids(schema, columns, opts, nil)
	out := &write.Arrays{Stage: stagedName, Metadata: m.Metadata}
	for k := range columns {
		c := &columns[k]
		c.Stored = stored
		out.Folders = append(out.Folders, c.SumsPath()[1:])
		if err := to.array(c, cutAs(data, c, grids[k]), parts, k); err != nil {
			return nil, err
		}
	}
	out.Folders, out.Storage = append(out.Folders, stored), m.Storage
	for node := range to.nodes {
		if err := to.sync(node); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// storageOf says how a field is compressed, nil if it is not, or is a new one.
func storageOf(m *store.Manifest, f store.Field) *store.Storage {
	for _, c := range layout.Columns([]tensor.Spec{f.Spec}) {
		if s := m.Storage[c.Name]; s != nil && c.Part != layout.Offsets {
			return s
		}
	}
	return nil
}

// cutAs returns the grid of a column whose shards have as many records as those of the dataset.
func cutAs(data *store.Dataset, c *layout.Column, g format.Grid) format.Grid {
	if c.Part != layout.Whole {
		return g
	}
	per := c.Rows
	for _, a := range layout.Of(data).Arrays {
		if len(a.Shards) > 0 && a.Records() == data.Records && a.Shards[0] < data.Records {
			per = a.Shards[0]
		}
	}
	g.Chunk, g.Shard = cut(c, g.Chunk, per)
	return g
}
