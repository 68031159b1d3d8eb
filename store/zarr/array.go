package zarr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	format "github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/store/write"
)

// array writes the shards of a column, and computes the checksums of its rows. Blocks of checksums restart with each
// shard, as each shard is a file that is read and verified on its own.
type array struct {
	stage  *write.Stage
	opts   *Options
	base   *base // the dataset that is appended to; nil for a new one
	meta   *layout.Column
	grid   format.Grid
	path   string
	pack   *write.ChunkPipeline
	left   int64 // rows that the shard still needs
	blocks write.BlockSums
	sums   []uint32
	stored int64 // bytes of all chunks
}

// write writes column k of the parts, after the rows of the base. Full shards of the base are linked and only the rest
// is copied.
func (a *array) write(parts [][]layout.Column, k int) error {
	linked, err := a.link(k)
	if err != nil {
		return err
	}
	a.pack, err = write.NewChunkPipeline(&shards{array: a}, write.ChunkPipelineOptions{
		Records: int(a.grid.Chunk), RowBytes: a.meta.Spec.RecordBytes(), First: linked * a.grid.Shard,
		Workers: a.opts.workers(), Reported: a.opts.Progress,
		Encoder: func() (write.ChunkEncoder, error) { return format.NewEncoder(a.grid, a.meta.Spec.RecordBytes()) },
	})
	if err != nil {
		return err
	}
	if base := a.base; base != nil {
		rest := layout.Of(base.data).Columns[k]
		if rest.Extents = rest.Extents[min(linked, int64(len(rest.Extents))):]; rest.Packed {
			err = base.unpack(&rest, a.append)
		} else {
			all := make([]layout.Column, len(layout.Of(base.data).Columns))
			copy(all, layout.Of(base.data).Columns)
			all[k] = rest
			parts = append([][]layout.Column{all}, parts...)
		}
	}
	if err == nil {
		err = write.ConcatRows(parts, k, a.append)
	}
	if err == nil {
		err = a.pack.Flush()
	}
	a.blocks.End()
	a.takeSums()
	return errors.Join(err, a.pack.Close())
}

// append adds rows to checksums and chunks.
func (a *array) append(rows []byte) error {
	size := int64(a.meta.Spec.RecordBytes())
	for len(rows) > 0 {
		piece := rows[:min(int64(len(rows)), a.left*size)]
		rows = rows[len(piece):]
		a.blocks.Add(piece, layout.CRC32C(piece))
		if a.left -= int64(len(piece)) / size; a.left == 0 {
			a.blocks.End()
			a.left = a.grid.Shard
		}
		a.takeSums()
		if err := a.pack.Append(piece); err != nil {
			return err
		}
	}
	return nil
}

// shard returns the path of a shard.
func (a *array) shard(number int64) string {
	return a.path + "/" + shardName(number, len(a.meta.Spec.Shape))
}

func (a *array) takeSums() {
	a.sums = append(a.sums, a.blocks.Done...)
	a.blocks.Done = a.blocks.Done[:0]
}

// link gives the full shards of the base a second name in the stage, and returns how many. It links none if the base is
// cut in another way, and stops where the file system has no hard links; the remaining rows are copied. Shards never
// change, so old and new dataset can share their files.
func (a *array) link(k int) (linked int64, err error) {
	base := a.base
	if base == nil || base.grids[a.meta.Name] != a.grid {
		return 0, nil
	}
	old := &layout.Of(base.data).Columns[k]
	for (linked+1)*a.grid.Shard <= old.Rows {
		name := a.shard(linked)
		from := old.Path()[1:] + "/" + shardName(linked, len(a.meta.Spec.Shape))
		if err := a.stage.LinkFrom(from, staged(name)); err != nil {
			break // the rows are copied
		}
		info, err := a.stage.Folder.Root().Lstat(staged(name))
		if err != nil {
			return 0, err
		}
		a.stored += info.Size() - a.grid.Head()
		linked++
	}
	if linked == 0 {
		return 0, nil
	}
	blocks := linked * layout.Blocks(a.grid.Shard, a.meta.Spec.RecordBytes())
	b, err := old.Extents[0].ReadChecksums(0, blocks, old.Extents[0].ReadFile)
	for ; len(b) > 0; b = b[4:] {
		a.sums = append(a.sums, binary.LittleEndian.Uint32(b))
	}
	return linked, err
}

// shards is the write.ChunkWriter of an array.
type shards struct {
	*array
	file  *os.File // the shard that is being written; nil between shards
	index format.Index
	at    int64
}

// Write implements write.ChunkWriter.
func (s *shards) Write(row int64, chunk []byte, _ uint32) (err error) {
	number := row / s.grid.Shard
	if s.file == nil {
		if s.file, err = s.stage.Folder.Create(staged(s.shard(number))); err != nil {
			return err
		}
		s.index, s.at = s.grid.NewIndex(), s.grid.Head()
	}
	if _, err := s.file.WriteAt(chunk, s.at); err != nil {
		return err
	}
	s.index.Set(row%s.grid.Shard/s.grid.Chunk, s.at, int64(len(chunk)))
	s.at += int64(len(chunk))
	s.stored += int64(len(chunk))
	if end := row + s.grid.Chunk; end < min((number+1)*s.grid.Shard, s.meta.Rows) {
		return nil
	}
	if _, err := s.file.WriteAt(s.index.Encode(s.grid), 0); err != nil {
		return err
	}
	f := s.file
	s.file = nil
	return write.SyncFile(f)
}

// Close implements write.ChunkWriter.
func (s *shards) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// shardName returns the name of a shard of an array whose rows have that many axes.
func shardName(number int64, axes int) string {
	return fmt.Sprintf("c.%d", number) + strings.Repeat(".0", axes)
}

// stagedName is the folder of the dataset in its stage.
const stagedName = "zarr"

// staged returns where a file of the dataset is in the stage.
func staged(path string) string { return filepath.Join(stagedName, filepath.FromSlash(path)) }
