package kinds

import (
	"context"
	"fmt"
	"io"

	"github.com/penstock/penstock/internal/block"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
)

// OpenPart opens a dataset that a view names, or raw samples. Package raw, which reads these and imports this package,
// sets OpenPart; without package raw, a view is of datasets alone.
var OpenPart func(ctx context.Context, path string, fields []string, split string) (views.Part, error)

// openView opens a view and what it names, which are local files, as a source.
func openView(ctx context.Context, root *vfs.Root, path string, _ source.Options, selection []column.Selection) (
	source.Source, error) {
	ds, err := views.Open(ctx, path, views.Options{Open: OpenPart})
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	var columns []array.Column
	for _, f := range ds.Fields {
		columns = append(columns, viewColumn(ctx, ds.Source, f))
	}
	chosen, err := array.Select(columns, selection)
	if err != nil {
		ds.Close()
		return nil, err
	}
	return array.New("view", path, source.BaseName(path), chosen, ds, root)
}

// viewColumn returns a field of a view as a column.
func viewColumn(ctx context.Context, src loader.Source, f store.Field) array.Column {
	r := &viewRecords{ctx: ctx, src: src, field: f}
	return array.Column{
		Field: source.Field{Field: f, Origin: f.Name, Stored: true}, Count: int64(src.Len()), At: r.at,
		Open: func() (array.Cursor, error) { return &viewCursor{viewRecords: r}, nil },
	}
}

// viewRecords reads the values of one field of a view.
type viewRecords struct {
	ctx   context.Context
	src   loader.Source
	field store.Field
}

// at appends nothing to buf but reuses its memory: it returns record i in it, or in larger memory.
func (r *viewRecords) at(i int64, buf []byte) ([]byte, error) {
	b := block.Block{Values: buf}
	err := r.read(&b, []int{int(i)})
	return b.Values, err
}

// read reads records into b. Retain keeps the maps of the view's datasets while they are read.
func (r *viewRecords) read(b *block.Block, indices []int) error {
	if err := r.src.Retain(); err != nil {
		return err
	}
	defer r.src.Release()
	return b.Read(r.ctx, r.src, r.field.Spec, indices)
}

// viewBlockRecords is the number of records that a cursor reads at a time, fewer if they are long.
const viewBlockRecords = 256

// viewCursor returns the records of a field in order. Blocks have separate memory, as their records outlive the
// next block.
type viewCursor struct {
	*viewRecords
	next  int // number of the record after the block
	block block.Block
	at, n int // position in the block, and its number of records
}

// Next returns the next record.
func (c *viewCursor) Next() ([]byte, error) {
	// Records are read in blocks, as a view may be made of several datasets, each with a cost for each call.
	if c.at == c.n {
		c.at, c.n = 0, min(viewBlockRecords, max(1, (4<<20)/max(1, c.field.RecordBytes())), c.src.Len()-c.next)
		if c.n <= 0 {
			c.n = 0
			return nil, io.EOF
		}
		indices := make([]int, c.n)
		for i := range indices {
			indices[i] = c.next + i
		}
		c.block = block.Block{}
		if err := c.read(&c.block, indices); err != nil {
			c.n = 0
			return nil, err
		}
		c.next += c.n
	}
	c.at++
	return c.block.Value(c.at - 1), nil
}

// Close has nothing to close.
func (c *viewCursor) Close() error { return nil }
