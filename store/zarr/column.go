package zarr

import (
	"encoding/json"
	"io/fs"

	"github.com/penstock/penstock/internal/layout"
	format "github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// WriteColumn implements [write.ArrayWriter]. The arrays are cut like the existing ones: in shards of as many records.
func WriteColumn(base *store.Manifest, in store.Folder, stage *write.Stage, c write.ArrayColumn) (*write.Arrays,
	error) {
	per, err := shardsOf(base, in)
	if err != nil {
		return nil, err
	}
	opts, f := new(Options), c.Field
	if s := storageOf(base, f); s != nil {
		opts.Compress = &Compression{Level: s.Level, ChunkRecords: s.ChunkRows}
	}
	schema := store.Schema{Fields: []store.Field{f}}
	m := &store.Manifest{Fields: append(schema.Fields, base.Fields...), Metadata: make(map[string]string)}
	to := &folder{stage: stage, opts: opts, manifest: m, nodes: make(map[string]json.RawMessage)}
	if err := stage.Folder.Root().RemoveAll(stagedName); err != nil { // of a commit that was stopped
		return nil, err
	}
	if err := stage.Folder.Root().MkdirAll(staged(metadataGroup+"/crc"), 0o777); err != nil {
		return nil, err
	}
	if f.Ragged {
		if err := to.group(c.Stored); err != nil {
			return nil, err
		}
	}
	parts := [][]layout.Column{layout.ColumnsOf(schema.Specs(), c.Shards, stage.Folder.Through(""))}
	columns := write.ConcatColumns(parts)
	grids := grids(schema, columns, opts, nil)
	out := &write.Arrays{Stage: stagedName, Metadata: m.Metadata}
	for k := range columns {
		columns[k].Stored = c.Stored
		out.Folders = append(out.Folders, columns[k].SumsPath()[1:])
		if err := to.array(&columns[k], cutAs(per, &columns[k], grids[k]), parts, k); err != nil {
			return nil, err
		}
	}
	out.Folders, out.Storage = append(out.Folders, c.Stored), m.Storage
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

// shardsOf returns how many records a shard of the dataset has: of a field that has several.
func shardsOf(m *store.Manifest, in store.Folder) (int64, error) {
	for _, c := range layout.Columns(m.Schema().Specs()) {
		if c.Part != layout.Whole {
			continue
		}
		c.Stored = m.Arrays[c.FieldName()]
		at := c.Path()[1:]
		text, err := fs.ReadFile(in.FS, at+"/"+layout.ZarrNode)
		if err != nil {
			return 0, err
		}
		a, err := format.Parse(nil, at, text)
		if err != nil {
			return 0, layout.Mark(err)
		}
		if a != nil && len(a.Shards) > 0 && a.Shards[0] < m.Records {
			return a.Shards[0], nil
		}
	}
	return m.Records, nil
}

// cutAs returns the grid of a column whose shards have as many records as those of the dataset.
func cutAs(per int64, c *layout.Column, g format.Grid) format.Grid {
	if c.Part == layout.Whole {
		g.Chunk, g.Shard = cut(c, g.Chunk, per)
	}
	return g
}
