package verify

import (
	"context"
	"errors"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
)

// openPacked returns a reader of a packed column. Its file stays open until the verification ends.
func (v *verifier) openPacked(c *layout.Column) (*chunk.Reader, error) {
	if v.pool == nil {
		v.pool = chunk.NewPool(v.opts.Workers)
	}
	if v.data.Format == "zarr" { // Zarr has its chunks in separate files
		return layout.Of(v.data).OpenColumn(c, nil, nil, chunk.Options{Pool: v.pool})
	}
	f, err := vfs.OpenRegular(v.data.Path)
	if err != nil {
		return nil, err
	}
	v.files = append(v.files, f)
	return layout.Of(v.data).OpenColumn(c, f, nil, chunk.Options{Pool: v.pool})
}

func (v *verifier) closePacked() {
	for _, f := range v.files {
		f.Close()
	}
	if v.pool != nil {
		v.pool.Close()
	}
}

// chunkBlocks returns how many blocks of per rows a chunk of a packed column touches, so that a job has whole chunks
// and none is decompressed twice; 0 for columns that are not packed.
func chunkBlocks(r *chunk.Reader, per int64) int64 {
	if r == nil {
		return 0
	}
	return (r.ChunkRecords() + per - 1) / per
}

// read fills b with rows of the job's extent, from a row on.
func (j *job) read(b []byte, row int64) error {
	if j.packed == nil {
		return j.extent.ReadFile(j.extent.Path, b, j.extent.Offset+row*int64(j.column.Spec.RecordBytes()))
	}
	first := j.extent.Row + row
	return j.packed.Records(context.Background(), b, first, first+int64(len(b)/j.column.Spec.RecordBytes()))
}

// offset returns the place of a row of the job's extent in its file. In a packed column it is the place of the chunk
// that err blames, or of the chunk with the row.
func (j *job) offset(row int64, err error) int64 {
	if bad := (*chunk.Error)(nil); errors.As(err, &bad) {
		return bad.Offset
	}
	if j.packed != nil {
		return j.packed.Offset(j.extent.Row + row)
	}
	return j.extent.Offset + row*int64(j.column.Spec.RecordBytes())
}

// localize finds the rows of a job in a packed column that cannot be decoded or differ from their checksums. It reads
// block by block, and joins neighboring blocks with the same error into one corruption: a damaged chunk is one fault
// and not one for each of its blocks.
func (v *verifier) localize(j *job, payload []byte) {
	size := int64(j.column.Spec.RecordBytes())
	per := layout.BlockRecords(int(size))
	from, to := j.rows()
	bad := fault{first: -1}
	for b := from; b < to; b += per {
		end := min(b+per, to)
		err := v.blockFault(j, payload[:(end-b)*size], b)
		if bad.first >= 0 && (err == nil || err.Error() != bad.err.Error()) {
			v.corrupt(j, bad.first, bad.last, bad.err)
			bad.first = -1
		}
		if err != nil {
			if bad.first < 0 {
				bad.first = b
			}
			bad.last, bad.err = end-1, err
		}
	}
	if bad.first >= 0 {
		v.corrupt(j, bad.first, bad.last, bad.err)
	}
}

// fault is an error in the rows first to last of an extent; none if first is negative.
type fault struct {
	first, last int64
	err         error
}

// blockFault returns the error of the block that begins at a row; nil if the block is intact.
func (v *verifier) blockFault(j *job, rows []byte, row int64) error {
	if err := j.read(rows, row); err != nil {
		return err
	}
	sums, err := j.extent.ReadChecksums(row/layout.BlockRecords(j.column.Spec.RecordBytes()), 1, j.extent.ReadFile)
	if err != nil {
		return err
	}
	return sums.Compare(0, layout.CRC32C(rows))
}
