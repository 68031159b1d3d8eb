package meta

import (
	"encoding/json"
	"hash/crc32"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// chunkAnswer describes a chunk as h5py does; offset is -1 if it does not know.
type chunkAnswer struct {
	coord  []int64
	mask   uint32
	offset int64
	size   int64
	crc    uint32
}

func parseChunks(t *testing.T, raw []json.RawMessage) []chunkAnswer {
	t.Helper()
	var list []chunkAnswer
	for _, r := range raw {
		var c chunkAnswer
		require.NoError(t, json.Unmarshal(r, &[]any{&c.coord, &c.mask, &c.offset, &c.size, &c.crc}))
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b chunkAnswer) int { return slices.Compare(a.coord, b.coord) })
	return list
}

// Every chunk must be where libhdf5 says, for every kind of index.
func TestChunksAgainstH5py(t *testing.T) {
	dir := generate(t)
	seen := map[indexKind]int{}
	for name, want := range readAnswers(t, dir) {
		f := mustOpen(t, filepath.Join(dir, name))
		for d := range f.All() {
			if d.Layout.Kind != Chunked {
				continue
			}
			table, err := d.Chunks()
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			seen[d.Layout.Index] += len(table.Chunks)
			compareChunks(t, name+d.Path, f, d, table, parseChunks(t, want.Objects[d.Path].Index))
		}
	}
	for k := singleChunk; k <= bTreeV1; k++ {
		if seen[k] == 0 {
			t.Errorf("no chunk with index %v among the files", k)
		}
	}
}

func compareChunks(t *testing.T, name string, f *File, d *Dataset, table *ChunkTable, want []chunkAnswer) {
	t.Helper()
	if len(table.Chunks) != len(want) {
		t.Errorf("%s (%v): %d chunks, want %d", name, d.Layout.Index, len(table.Chunks), len(want))
		return
	}
	for i, c := range table.Chunks {
		w := want[i]
		if w.offset >= 0 && c.Offset != w.offset {
			t.Errorf("%s (%v): chunk %v is at %d, want %d", name, d.Layout.Index, c.Coord, c.Offset, w.offset)
			return
		}
		if !slices.Equal(c.Coord, w.coord) || c.Mask != w.mask || c.Size != w.size {
			t.Errorf("%s (%v): chunk %d is %+v, want %+v", name, d.Layout.Index, i, c, w)
			return
		}
		data := make([]byte, c.Size)
		if _, err := f.r.ReadAt(data, c.Offset); err != nil || crc32.ChecksumIEEE(data) != w.crc {
			t.Errorf("%s (%v): chunk %v: other bytes than h5py's, error %v", name, d.Layout.Index, c.Coord, err)
			return
		}
	}
}
