package chunk

import "github.com/penstock/penstock/internal/hdf5/meta"

// storedAs says how data is stored that is not read here, as far as its description and the index
// of its chunks can be read.
func storedAs(data *meta.Dataset) Advice {
	r := &Reader{path: data.Path}
	if data.Err != nil || data.Null || r.lay(data) != nil || !r.flat && r.index(data) != nil {
		return Advice{}
	}
	return r.storage(data)
}

// storage counts what is in the file.
func (r *Reader) storage(data *meta.Dataset) Advice {
	a := Advice{Records: r.Len(), RecordBytes: int64(r.grid.record)}
	if fits(a.RecordBytes, a.Records) {
		a.Bytes = a.RecordBytes * a.Records
	}
	if !r.flat {
		a.countChunks(r)
	} else if data.Layout.Offset >= 0 && len(data.External) == 0 {
		a.Stored = data.Layout.Size
	}
	if a.Bytes > 0 {
		a.Ratio = float64(a.Stored) / float64(a.Bytes)
	}
	return a
}

// countChunks fills in what there is to know of chunks.
func (a *Advice) countChunks(r *Reader) {
	g := &r.grid
	a.ChunkBytes, a.ChunkRecords, a.PerRecord = int64(g.size), g.deep, g.columns
	a.Chunks, a.Places = int64(len(r.chunks)), g.rows*g.columns
	for i, c := range r.chunks {
		a.Stored += c.Size
		a.Largest = max(a.Largest, c.Size)
		if i == 0 || c.Size < a.Smallest {
			a.Smallest = c.Size
		}
	}
}
