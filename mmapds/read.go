package mmapds

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/penstock/penstock/tensor"
)

// Slice returns records [a, b) of a field as one array of shape (b-a, record shape...). It touches no memory, unless
// WithVerify asks for it, but starts to read up to 2 MiB of the bytes that are not in memory. If Contiguous returns
// false, the records are copied, or inflated, into new memory. The view is valid until Close: see Lifetimes above.
func (d *Dataset) Slice(field string, a, b int) (tensor.View, error) {
	rows, err := d.rows(field)
	if err == nil {
		err = checkRange(field, a, b, d.Len())
	}
	if err != nil {
		return tensor.View{}, err
	}
	if first, end, ok := d.live.one(a, b); ok {
		return rows.slice(first, end)
	}
	data := make([]byte, (b-a)*rows.column.size)
	return tensor.Of(rows.column.spec, b-a, data), d.Gather(context.Background(), field, consecutive(a, b), data)
}

// consecutive returns the numbers from a up to b.
func consecutive(a, b int) []int {
	list := make([]int, b-a)
	for i := range list {
		list[i] = a + i
	}
	return list
}

// Contiguous reports whether Slice(field, a, b) is a view of mapped memory. On Linux, in datasets of this module, it
// is, except for slices that cross into another split or into appended records; elsewhere, slices that cross shards
// are not. If a Pager removes bytes from the files again, none is. Of datasets that are read past the page cache,
// only single records are said to be: more are gathered, as pages that are mapped once and not used again cost more
// than a copy.
func (d *Dataset) Contiguous(field string, a, b int) bool {
	f, err := d.field(field)
	if err != nil || f.check(a, b) != nil || d.pager != nil && !d.pager.Stays() {
		return false
	}
	a, b, one := d.live.one(a, b)
	if !one {
		return false
	}
	from, to, err := f.rowsOf(context.Background(), a, b)
	return err == nil && f.rows.contiguous(from, to) && (b-a <= 1 || !f.rows.isDirect())
}

// Prefetch starts to read records [a, b) of a field from disk, and does not wait. For a ragged
// field it waits for the offsets, without which the place of the rows is not known; if a Pager
// would have to fetch the offsets first, Prefetch does nothing.
func (d *Dataset) Prefetch(name string, a, b int) error { return d.each(name, a, b, (*field).prefetch) }

// Warm reads records [a, b) of a field from disk, unless they are in memory already. It waits in a
// system call, so that touching the records afterwards does not block a P of the Go scheduler.
func (d *Dataset) Warm(name string, a, b int) error { return d.each(name, a, b, (*field).warm) }

// each calls do for every stretch of records [a, b) of a field between deleted records, until do
// fails.
func (d *Dataset) each(name string, a, b int, do func(f *field, ctx context.Context, a, b int) error) error {
	f, err := d.field(name)
	if err == nil {
		err = f.check(a, b)
	}
	if err != nil {
		return err
	}
	return d.live.each(a, b, func(a, b int) error { return do(f, context.Background(), a, b) })
}

// IsWarm reports whether Slice of records [a, b) of a field is a view of pages that were brought in
// before, and that need no check of their checksums: Warm would have nothing to do. It makes no
// system call and touches no memory of the file. For packed fields, ragged fields and fields that
// WithVerify checks, IsWarm returns false.
func (d *Dataset) IsWarm(field string, a, b int) bool {
	rows, err := d.rows(field)
	if err != nil || checkRange(field, a, b, d.Len()) != nil {
		return false
	}
	a, b, one := d.live.one(a, b)
	return one && rows.isWarm(a, b)
}

// Gather copies record indices[i] to dst[i*size:], with size the field's RecordBytes; dst is
// exactly as long as that needs. Indices may come in any order and repeat. It starts all
// reads before it waits for the first, and allocates nothing for records that are in memory.
// The package documentation says how all other records are read.
func (d *Dataset) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	rows, err := d.rows(field)
	if err != nil {
		return err
	}
	if len(dst) != len(indices)*rows.column.size {
		panic("mmapds: Gather: dst has not the length of the records asked for")
	}
	if d.live == nil {
		return rows.gather(ctx, indices, dst)
	}
	return d.live.translated(field, indices, func(places []int) error { return rows.gather(ctx, places, dst) })
}

// SliceRagged returns records [a, b) of a ragged field: their rows, back to back, as one array of shape (rows,
// row shape...), and in offsets, which has b-a+1 elements, the row at which each record starts and the row at
// which the last record ends. offsets[0] is 0, so the offsets are the cu_seqlens of attention kernels, in rows.
//
// It reads the offsets and no values. The view is valid until Close; where the records cross
// shards, it is a copy.
func (d *Dataset) SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error) {
	f, err := d.ragged(field, a, b)
	if err != nil {
		return tensor.View{}, err
	}
	if len(offsets) != b-a+1 {
		panic("mmapds: SliceRagged: offsets has not one element more than there are records")
	}
	if first, end, ok := d.live.one(a, b); ok {
		return f.slice(first, end, offsets)
	}
	data, err := d.GatherRagged(context.Background(), field, consecutive(a, b), offsets, nil)
	if err != nil {
		return tensor.View{}, err
	}
	return tensor.Of(f.rows.column.spec, int(offsets[b-a]), data), nil
}

// Lengths fills offsets, which has one element more than indices, with where the records of
// a ragged field start when their rows are one after the other: what GatherRagged will give,
// before it is done. It allocates nothing.
func (d *Dataset) Lengths(ctx context.Context, field string, indices []int, offsets []int64) error {
	f, err := d.raggedList(field, indices, offsets)
	if err != nil {
		return err
	}
	s := f.borrow()
	defer f.giveBack(s)
	if d.live == nil {
		return f.lengths(ctx, indices, offsets, s)
	}
	return d.live.translated(field, indices, func(places []int) error { return f.lengths(ctx, places, offsets, s) })
}

// GatherRagged copies the rows of records indices, in that order, to the start of dst and
// returns it, cut or grown to their length. Offsets, which has one element more than
// indices, gets the row at which each record starts, and the row at which the last record
// ends. Indices may come in any order and repeat. It allocates nothing where dst has the
// capacity.
func (d *Dataset) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte,
) ([]byte, error) {
	f, err := d.raggedList(field, indices, offsets)
	if err != nil {
		return dst, err
	}
	if d.live == nil {
		return f.gather(ctx, indices, offsets, dst)
	}
	err = d.live.translated(field, indices, func(places []int) (err error) {
		dst, err = f.gather(ctx, places, offsets, dst)
		return err
	})
	return dst, err
}

// raggedList returns a ragged field for a call with those indices and offsets. Offsets of a wrong
// length are a mistake in the caller's program, so they panic.
func (d *Dataset) raggedList(name string, indices []int, offsets []int64) (*field, error) {
	f, err := d.ragged(name, 0, 0)
	if err == nil && len(offsets) != len(indices)+1 {
		panic("mmapds: offsets has not one element more than there are indices")
	}
	return f, err
}

// Ranges returns the byte ranges of a field's records, so that a Pager can fetch them ahead. For a
// ragged field it waits for the records' offsets.
func (d *Dataset) Ranges(ctx context.Context, field string, indices []int) ([]Range, error) {
	f, err := d.field(field)
	if err != nil {
		return nil, err
	}
	var list []Range
	err = d.live.translated(field, indices, func(places []int) (err error) {
		list, err = f.ranges(ctx, places)
		return err
	})
	return list, err
}

// Guard calls f. If f touches mapped memory that the file no longer has, f is stopped there, and
// Guard returns an error that names file, field and record. Everything else, including other
// panics, passes through. Guard protects the calling goroutine only.
func (d *Dataset) Guard(f func() error) (err error) {
	defer catch(&err, debug.SetPanicOnFault(true), (*faults)(d))
	return f()
}

// Fault returns why a read at addr failed, if addr is in mapped memory of the Dataset: a
// [ReadError] that names file, field and record. It returns nil for every other address. The
// caller has recovered from the fault, as [runtime/debug.SetPanicOnFault] lets it.
func (d *Dataset) Fault(addr uintptr) error { return (*faults)(d).fault(addr) }

// faults is a Dataset as the faulter of all its mapped memory.
type faults Dataset

func (d *faults) fault(addr uintptr) error {
	for _, f := range d.fields {
		if err := f.fault(addr); err != nil {
			return err
		}
	}
	return nil
}

// Intact returns an error, a [ReadError], if a file does not have all of its records any more, because
// it was truncated after it was opened. A read of a page beyond the new end is an error in any case; the
// rest of the last page of such a file reads as zeros. It costs a system call for each file.
func (d *Dataset) Intact() error {
	if d.pager != nil && !d.pager.Complete() {
		return nil
	}
	for _, f := range d.fields {
		if err := f.intact(); err != nil {
			return err
		}
	}
	return nil
}

// Location says where a record of a field is, for people: the file, the shard, and the first byte, or
// the first byte of the record's chunk. Location returns "" if the record does not exist. Of a ragged
// field it reads only the offsets, and returns "" if a Pager has to fetch them.
func (d *Dataset) Location(field string, record int) string {
	if d.Retain() != nil {
		return ""
	}
	defer d.Release()
	f, err := d.field(field)
	if err != nil || f.check(record, record+1) != nil || f.offsets != nil && !f.offsets.isLocal() {
		return ""
	}
	record, _, _ = d.live.one(record, record+1)
	row, _, err := f.rowsOf(context.Background(), record, record+1)
	if err != nil {
		return ""
	}
	path, shard, at := f.rows.column.where(min(row, f.rows.column.len()-1)) // the last records may have no rows
	if path == "" {
		return ""
	}
	return fmt.Sprintf("%s, shard %d, byte %#x", path, shard, at)
}
