package zarr

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/penstock/penstock/internal/layout"
	format "github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// Columns implements [write.ArrayWriter]. Arrays of new columns are cut like the existing ones, in shards of as many
// records, so that a shard of every column has the same records.
type Columns struct{}

var _ write.ArrayWriter = Columns{}

// Frame implements write.ArrayWriter. For chunks that are stored without a codec it returns the header and the padding
// of a shard's file: records are then written once, into the file that becomes the shard. Ragged fields have one shard
// whose size is not known in advance, and compressed chunks have to be made first, so Write copies the rows of both.
func (Columns) Frame(base *store.Manifest, in store.Folder, f store.Field) (*write.Frame, []int64, error) {
	columns := layout.Columns([]tensor.Spec{f.Spec})
	if f.Ragged {
		return nil, nil, nil
	}
	columns[0].Rows = base.Records
	all, err := gridsOf(base, in, f, columns)
	if err != nil || all[0].Zstd > 0 {
		return nil, nil, err
	}
	g, size := all[0], int64(f.RecordBytes())
	var cuts []int64
	for left := base.Records; left > 0; left -= g.Shard {
		cuts = append(cuts, min(left, g.Shard))
	}
	return &write.Frame{
		Name: fmt.Sprintf("shards of Zarr of %d records in chunks of %d", g.Shard, g.Chunk),
		Head: g.Head(), Pad: g.Chunk * size,
		Index: func(rows int64) []byte {
			x := g.NewIndex()
			for i := int64(0); i*g.Chunk < rows; i++ {
				x.Set(i, g.Head()+i*g.Chunk*size, g.Chunk*size)
			}
			return x.Encode(g)
		},
	}, cuts, nil
}

// gridsOf returns how the columns of a field are cut into shards and chunks. The number of rows of each column must be
// known.
func gridsOf(base *store.Manifest, in store.Folder, f store.Field, columns []layout.Column) ([]format.Grid, error) {
	per, err := shardsOf(base, in)
	if err != nil {
		return nil, err
	}
	list := grids(store.Schema{Fields: []store.Field{f}}, columns, optionsOf(base, f), nil)
	for k := range list {
		list[k] = cutAs(per, &columns[k], list[k])
	}
	return list, nil
}

// optionsOf returns the options for writing a field: a column that is replaced keeps how it was compressed.
func optionsOf(base *store.Manifest, f store.Field) *Options {
	opts := new(Options)
	if s := storageOf(base, f); s != nil {
		opts.Compress = &Compression{Level: s.Level, ChunkRecords: s.ChunkRows}
	}
	return opts
}

// Write implements write.ArrayWriter.
func (Columns) Write(base *store.Manifest, in store.Folder, stage *write.Stage, c write.ArrayColumn) (*write.Arrays,
	error) {
	f := c.Field
	schema := store.Schema{Fields: []store.Field{f}}
	m := &store.Manifest{Fields: append(schema.Fields, base.Fields...), Metadata: make(map[string]string)}
	to := &folder{stage: stage, opts: optionsOf(base, f), manifest: m, nodes: make(map[string]json.RawMessage)}
	if err := stage.Folder.Root().RemoveAll(stagedName); err != nil { // left by an interrupted commit
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
	grids, err := gridsOf(base, in, f, columns)
	if err != nil {
		return nil, err
	}
	out := &write.Arrays{Stage: stagedName, Metadata: m.Metadata}
	for k := range columns {
		columns[k].Stored = c.Stored
		out.Folders = append(out.Folders, columns[k].SumsPath()[1:])
		if c.Framed {
			err = to.adopt(&columns[k], grids[k], c.Shards, parts[0][k].Extents)
		} else {
			err = to.array(&columns[k], grids[k], parts, k)
		}
		if err != nil {
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

// adopt links files of the stage, which have the form of Frame, as the shards of a column. The files keep their names
// in the stage, too, from which an interrupted commit is resumed.
func (f *folder) adopt(c *layout.Column, g format.Grid, shards []store.Shard, extents []layout.Extent) error {
	path, err := f.arrayNode(c, g)
	if err != nil {
		return err
	}
	var sums []uint32
	for i, s := range shards {
		to := staged(path + "/" + shardName(int64(i), len(c.Spec.Shape)))
		if err := f.stage.Folder.Link(f.stage.Folder.Through(s.Files[0].Name), to); err != nil {
			return err
		}
		b, err := extents[i].ReadChecksums(0, layout.Blocks(s.Count, c.Spec.RecordBytes()), extents[i].ReadFile)
		if err != nil {
			return err
		}
		for ; len(b) > 0; b = b[4:] {
			sums = append(sums, binary.LittleEndian.Uint32(b))
		}
	}
	return f.sums(c.SumsPath()[1:], sums)
}

// storageOf returns how a field is compressed; nil if it is not compressed, or new.
func storageOf(m *store.Manifest, f store.Field) *store.Storage {
	for _, c := range layout.Columns([]tensor.Spec{f.Spec}) {
		if s := m.Storage[c.Name]; s != nil && c.Part != layout.Offsets {
			return s
		}
	}
	return nil
}

// shardsOf returns how many records a shard of the dataset has, by the first field that has several shards. If every
// field has one shard, that is the number of records.
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
			return 0, err
		}
		if a != nil && len(a.Shards) > 0 && a.Shards[0] < m.Records {
			return a.Shards[0], nil
		}
	}
	return m.Records, nil
}

// cutAs returns the grid of a column with shards of per records, as many as the dataset's other shards have.
func cutAs(per int64, c *layout.Column, g format.Grid) format.Grid {
	if c.Part == layout.Whole {
		g.Chunk, g.Shard = cut(c, g.Chunk, per)
	}
	return g
}
