package table

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// find makes the first pass and decides the fields.
func (t *table) find(ctx context.Context, opts source.Options, selection []column.Selection) error {
	held := &agreement{blocks: make(map[int64]*heldBlock)}
	if opts.Blocks {
		held.left = heldBytes
	}
	s, err := t.scan(ctx, opts.Seen, selection, held)
	if err == nil {
		err = t.decide(s, selection)
		for i := range t.columns {
			c := &t.columns[i]
			of := c.field
			if c.concat {
				of = source.NumberField(of.Name, of.DType)
			}
			c.typ.SetMissing(opts.Missing, of)
		}
	}
	if err == nil {
		t.hold(held)
	}
	return err
}

// scan reads all rows. One goroutine reads blocks, and one for each CPU examines them.
func (t *table) scan(ctx context.Context, seen func(int64), selection []column.Selection, held *agreement) (
	*tableScan, error) {
	w := &scanWork{table: t, found: newTableScan(selection), seen: seen, held: held}
	var stop error
	err := t.eachFile(func(file *tableFile) error {
		for {
			b, err := nextBlock(file)
			// The block comes with the error after it, and is examined first.
			if b != nil {
				stop = w.add(b)
			}
			if stop = cmp.Or(stop, context.Cause(ctx)); stop != nil {
				return errStop
			}
			if err != nil {
				return err
			}
		}
	})
	w.end()
	if err = cmp.Or(stop, err); err != nil {
		return nil, err
	}
	return w.result()
}

// scanWork is the goroutines that examine blocks. They start when the first row is known.
type scanWork struct {
	table  *table
	found  *tableScan
	held   *agreement
	idle   bool // rows are only counted
	blocks chan scanBlock
	parts  []*tableScan
	done   sync.WaitGroup
	number int64 // number of the next block

	mu   sync.Mutex
	seen func(int64)
	rows []int64 // by block: its number of rows
}

// add passes a block to the goroutines. A bad first row is an error, as it says which columns there are.
func (w *scanWork) add(b *block) error {
	if w.blocks == nil {
		row := b.first()
		if row == nil {
			return nil
		}
		if err := w.table.first(row, w.found); err != nil {
			return err
		}
		w.begin(row.file.header != nil)
	}
	w.blocks <- scanBlock{b, w.number}
	w.number++
	return nil
}

// begin starts the goroutines. header says that the file has a header.
func (w *scanWork) begin(header bool) {
	w.idle = w.found.idle(header)
	w.table.unseen = w.idle && !header
	w.table.expect(w.found.order)
	n := runtime.GOMAXPROCS(0)
	w.blocks = make(chan scanBlock, n)
	for range n {
		part := newTableScan(w.found.selection)
		w.parts = append(w.parts, part)
		w.done.Go(func() {
			r := new(typedReader)
			for b := range w.blocks {
				switch {
				case w.idle:
					w.counted(b.number, b.count())
				// With --fields, types are mostly given, and values are not kept: agreement is about all columns.
				case len(part.selection) > 0:
					w.counted(b.number, part.look(w.table.format, b))
				default:
					w.counted(b.number, w.held.look(r, part, b))
				}
			}
		})
	}
}

// counted notes the number of rows in a block.
func (w *scanWork) counted(block, rows int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := int(block) + 1; n > len(w.rows) {
		w.rows = append(w.rows, make([]int64, n-len(w.rows))...)
	}
	w.rows[block] = rows
	w.seen(rows)
}

// end waits until all blocks are examined.
func (w *scanWork) end() {
	if w.blocks != nil {
		close(w.blocks)
		w.done.Wait()
	}
}

// result merges what all goroutines have found.
func (w *scanWork) result() (*tableScan, error) {
	if w.blocks == nil {
		return nil, errors.New("holds no rows")
	}
	w.held.blocksRead = w.number
	before := make([]int64, len(w.rows)) // rows before each block
	for i, n := range w.rows {
		before[i] = w.found.rows
		w.found.rows += n
	}
	for _, part := range w.parts {
		w.found.merge(part)
	}
	for _, c := range w.found.columns {
		c.oddRow = before[c.oddAt[0]] + c.oddAt[1]
	}
	w.found.sort()
	return w.found, nil
}
