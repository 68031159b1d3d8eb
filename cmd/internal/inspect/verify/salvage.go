package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
)

// salvage verifies a flat dataset that cannot be opened, because a file is missing or has the wrong
// size or header. It reports each such file and checks everything else, so that the user learns
// which records are still good. It builds a dataset of the fields and shards whose files have the
// right sizes. The numbers of its extents are no shard numbers, as shards may be missing; shardOf
// translates them.
func (v *Verification) salvage(ctx context.Context, path string, m *store.Manifest, opts Options) error {
	d := &store.Dataset{Path: path, Format: "flat", Schema: m.Schema(), Records: m.Records}
	layout.Of(d).Columns = layout.Columns(m.Schema().Specs())
	shardOf := make([][]int, len(m.Fields))
	var rest []wholeFile // payloads whose header no block checksum covers, or none of whose bytes
	for i, s := range m.Shards {
		columns := layout.ColumnsOf(m.Schema().Specs(), []store.Shard{s}, path)
		for f := range m.Fields {
			whole, files := v.salvageField(path, s, i, columns, f)
			rest = append(rest, files...)
			if whole {
				addExtents(d, columns, f, s)
				shardOf[f] = append(shardOf[f], i)
			}
		}
	}
	if err := v.blocks(ctx, d, shardOf, opts); err != nil {
		return err
	}
	for _, w := range rest {
		if err := v.whole(ctx, path, w); err != nil {
			return err
		}
	}
	return nil
}

// salvageField looks at the sizes of a field's files in one shard. whole reports that all sizes are
// right; files are the payloads with the right size. If a checksum file is missing, the payload can
// still be compared with the checksum of the whole file in the manifest.
func (v *Verification) salvageField(path string, s store.Shard, shard int, columns []layout.Column, field int) (
	whole bool, files []wholeFile) {
	whole = true
	for k, c := range columns {
		if c.Field != field {
			continue
		}
		payload, sums := s.Files[2*k], s.Files[2*k+1]
		if v.sized(path, s, shard, c, payload) {
			files = append(files, wholeFile{field: payload.Field, shard: shard, records: s, file: payload})
		} else {
			whole = false
		}
		whole = v.sized(path, s, shard, c, sums) && whole
	}
	for i := range files {
		files[i].blocks = whole
	}
	return whole, files
}

// addExtents adds a field's extents of one shard to the dataset.
func addExtents(d *store.Dataset, columns []layout.Column, field int, s store.Shard) {
	for k, c := range columns {
		if c.Field != field {
			continue
		}
		to, e := &layout.Of(d).Columns[k], c.Extents[0]
		e.First = s.First
		if c.Part == layout.Offsets {
			e.First += int64(len(to.Extents)) // an extent has one offset more than records
		}
		to.Extents, to.Rows = append(to.Extents, e), to.Rows+e.Count
	}
}

// sized reports whether a file of a shard has the size in the manifest, and adds a corruption if
// not. Of a file that is cut short, the records before the cut are not counted as corrupt.
func (v *Verification) sized(path string, s store.Shard, shard int, c layout.Column, file store.File) bool {
	d := Corruption{Field: file.Field, Shard: shard, First: s.First, Last: s.First + s.Count - 1, File: file.Name}
	info, err := os.Stat(filepath.Join(path, file.Name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Problem = "the file is missing"
	case err != nil:
		d.Problem = err.Error()
	case !info.Mode().IsRegular():
		d.Problem = "it is not a regular file"
	case info.Size() < file.Bytes:
		d.Offset = info.Size()
		d.Problem = fmt.Sprintf("the file ends here, cut short by %d of %d bytes", file.Bytes-info.Size(), file.Bytes)
		if isPayload(s, file) && c.Part == layout.Whole {
			d.First += max(0, info.Size()-layout.HeaderBytes) / int64(c.Spec.RecordBytes())
		}
	case info.Size() > file.Bytes:
		d.Offset = file.Bytes
		d.Problem = fmt.Sprintf("the file should end here, but has %d bytes more", info.Size()-file.Bytes)
	default:
		return true
	}
	v.Corruptions = append(v.Corruptions, d)
	return false
}

// isPayload reports whether a file of a shard has values and not checksums. The files of a shard
// come in pairs: payload, checksums.
func isPayload(s store.Shard, file store.File) bool {
	for i := 0; i < len(s.Files); i += 2 {
		if s.Files[i] == file {
			return true
		}
	}
	return false
}

// wholeFile is a payload file whose checksum is compared as a whole.
type wholeFile struct {
	field   string
	shard   int
	records store.Shard
	file    store.File
	blocks  bool // its records were already compared block by block
}

// whole compares a payload file with the manifest's checksum of the file. If its records were found
// right block by block and the whole file is not, then its header is corrupt.
func (v *Verification) whole(ctx context.Context, path string, w wholeFile) error {
	if w.blocks && v.has(w.file.Name) {
		return nil
	}
	got, err := fileCRC(ctx, path, w.file.Name)
	if err != nil {
		return err
	}
	if got == w.file.CRC32C {
		return nil
	}
	d := Corruption{Field: w.field, Shard: w.shard, First: w.records.First, Last: w.records.First + w.records.Count - 1,
		File: w.file.Name}
	d.Problem = fmt.Sprintf("CRC32C of the file is %s, was %s when it was written", got, w.file.CRC32C)
	if w.blocks {
		d.Problem = "its header is not what was written; the records are"
	}
	v.Corruptions = append(v.Corruptions, d)
	return nil
}

// has reports whether a corruption of that file was found.
func (v *Verification) has(file string) bool {
	for _, d := range v.Corruptions {
		if d.File == file {
			return true
		}
	}
	return false
}

// fileCRC returns the CRC32C of a file, as the manifest writes it.
func fileCRC(ctx context.Context, folder, name string) (string, error) {
	f, err := vfs.Folder(folder).Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var crc layout.CRCWriter
	_, err = io.Copy(&crc, reader{ctx, f})
	return layout.HexCRC(crc.Sum), err
}

// reader is a Reader whose Read fails after the end of the context.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(b)
}
