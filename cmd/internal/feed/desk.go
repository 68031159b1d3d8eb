package feed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
)

// desk holds the client's slots. A slot is free or has a batch, which the client may read until it
// gives the slot back; so the number of slots is the backpressure of a session.
//
// If direct is set, a batch's fields are in the loader's buffers, which are in the arena. In
// addition, each slot has memory for what is not in those buffers: the numbers of the records,
// their mask, and copies of fields.
//
// One goroutine calls put and keep; another may call release and check.
type desk struct {
	arena  *arena
	fields []served
	packed *combine.Packed // nil if records are not packed
	direct bool            // fields are in the loader's buffers, which are in the arena or in files
	files  *files          // nil if no field may be in a file
	memory [][]byte
	ends   []int32 // of packed records; used by put only
	last   batch   // the result of put; used by put only

	free chan int

	// mu guards held and used.
	mu   sync.Mutex
	held []loader.Batch // by slot
	used []bool
}

// newDesk returns a desk with free slots. If batches have one size, all memory for copies is
// allocated at once: a client that page-locks the memory for a GPU, which is slow, then does it
// only once.
func newDesk(a *arena, s *subject, direct bool, slots, records int) (*desk, error) {
	d := &desk{
		arena: a, fields: s.fields, packed: s.packed, direct: direct, memory: make([][]byte, slots),
		free: make(chan int, slots), held: make([]loader.Batch, slots), used: make([]bool, slots),
	}
	for slot := range slots {
		d.free <- slot
		if direct {
			var err error
			if d.memory[slot], err = a.Alloc(countsBytes(records)); err != nil {
				return nil, errors.Join(err, d.Close())
			}
		}
	}
	return d, nil
}

// countsBytes returns the bytes of the numbers and the mask of a batch.
func countsBytes(records int) int { return aligned(8*records) + aligned(records) }

// put keeps a batch in a free slot and returns where its parts are; the result is valid until the
// next put. next is the position after the batch. One goroutine calls put.
//
// Fields that the client can reach are not copied. First the size of all copies is added up, so
// that the slot's memory grows before anything is written to it.
func (d *desk) put(slot int, b loader.Batch, next loader.State) (*batch, error) {
	if d.direct {
		if err := b.Keep(); err != nil {
			return nil, err
		}
	}
	out := &d.last
	*out = batch{Slot: slot, Count: b.Len(), Epoch: b.Epoch(), Step: b.Step(), Next: [2]int{next.Epoch, next.Step},
		Done: next.Done, Fields: out.Fields[:0]}
	if d.packed != nil {
		d.ends = d.packed.CuSeqlens(d.ends[:0], b.Indices())
	}
	need := 0
	for i, f := range d.fields {
		at, is, err := d.find(i, f, b)
		if err != nil {
			return nil, err
		}
		if !is {
			need += copied(f, b)
		}
		out.Fields = append(out.Fields, at)
	}
	w, err := d.writer(slot, need+countsBytes(b.Len())+aligned(4*len(d.ends)))
	if err != nil {
		return nil, err
	}
	out.Indices = w.putIndices(b.Indices())
	out.Mask = w.put(bytesOf(b.Mask()))
	for i, f := range d.fields {
		if out.Fields[i].At == elsewhere {
			out.Fields[i] = d.copy(w, f, b)
		}
	}
	if d.packed != nil {
		out.CuSeqlens = &place{At: w.put(bytesOf(d.ends)), Rows: len(d.ends)}
	}
	out.Size = d.arena.bytes()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[slot], d.used[slot] = b, true
	return out, nil
}

// elsewhere is the place of a field that has to be copied.
const elsewhere = -1

// find returns where the client finds a field without a copy, or false if it has to be copied.
func (d *desk) find(i int, f served, b loader.Batch) (place, bool, error) {
	if !d.direct {
		return place{At: elsewhere}, false, nil
	}
	data := b.Field(f.source).Bytes()
	if at, is := d.arena.find(data); is {
		return place{At: at}, true, nil
	}
	if d.files != nil {
		if at, is, err := d.files.place(i, data); is || err != nil {
			return at, is, err
		}
	}
	return place{At: elsewhere}, false, nil
}

// copied returns the bytes that the copy of a field takes.
func copied(f served, b loader.Batch) int {
	n := aligned(len(b.Field(f.source).Bytes()))
	if f.Ragged {
		n += aligned(8 * (b.Len() + 1))
	}
	return n
}

// copy copies a field of a batch into the slot's memory.
func (d *desk) copy(w *areaWriter, f served, b loader.Batch) place {
	v := b.Field(f.source)
	var shape []int
	if f.padded {
		shape = v.Shape()[1:]
	}
	if f.Ragged {
		return place{Offsets: w.put(bytesOf(b.Offsets(f.source))), Rows: v.Len(), At: w.put(v.Bytes()), Shape: shape}
	}
	return place{At: w.put(v.Bytes()), Shape: shape}
}

// writer returns the memory of a slot with at least need bytes. Memory that has to grow gets half
// as much again as is needed, so that it seldom grows: a client that has page-locked memory keeps
// the pages of dropped memory until it ends.
func (d *desk) writer(slot, need int) (*areaWriter, error) {
	if old := d.memory[slot]; need > len(old) {
		if old != nil {
			d.memory[slot] = nil
			if err := d.arena.drop(old); err != nil {
				return nil, err
			}
			need += need / 2
		}
		var err error
		if d.memory[slot], err = d.arena.Alloc(need); err != nil {
			return nil, err
		}
	}
	return &areaWriter{memory: d.memory[slot], first: d.arena.offset(d.memory[slot])}, nil
}

// release takes the batches of slots back and frees the slots.
func (d *desk) release(slots []int) error {
	for _, slot := range slots {
		b, err := d.take(slot)
		if err != nil {
			return err
		}
		b.Release()
		d.free <- slot
	}
	return nil
}

// check returns an error if the client claims to hold a slot that does not exist.
func (d *desk) check(held []int) error {
	for _, slot := range held {
		if slot < 0 || slot >= len(d.used) {
			return fmt.Errorf("the client holds slot %d of %d", slot, len(d.used))
		}
	}
	return nil
}

// keep frees all slots except those that the client still holds after a restart. It must not run
// beside put.
func (d *desk) keep(held []int) {
	for slot := range d.used {
		if slices.Contains(held, slot) {
			continue
		}
		if b, err := d.take(slot); err == nil { // else the slot has no batch
			b.Release()
			d.free <- slot
		}
	}
}

// take removes the batch from a slot. A slot without a batch is an error of the client.
func (d *desk) take(slot int) (loader.Batch, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slot < 0 || slot >= len(d.used) || !d.used[slot] {
		return loader.Batch{}, fmt.Errorf("the client gave back slot %d, in which it has no batch", slot)
	}
	b := d.held[slot]
	d.held[slot], d.used[slot] = loader.Batch{}, false
	return b, nil
}

// Close releases all batches, and unmaps the memory of the slots.
func (d *desk) Close() error {
	var errs []error
	for slot, used := range d.used {
		if used {
			d.held[slot].Release()
		}
		if d.memory[slot] != nil {
			errs = append(errs, d.arena.Free(d.memory[slot]))
		}
	}
	return errors.Join(errs...)
}

// areaWriter copies data into memory, one piece after the other, each aligned.
type areaWriter struct {
	memory []byte
	first  int64 // offset of memory in the arena
	at     int
}

// put copies data, and returns its offset in the arena.
func (w *areaWriter) put(data []byte) int64 {
	at := w.at
	w.at += aligned(copy(w.memory[at:at+len(data)], data))
	return w.first + int64(at)
}

// putIndices copies record numbers as int64, and returns their offset in the arena.
func (w *areaWriter) putIndices(indices []int) int64 {
	at := w.at
	for i, index := range indices {
		binary.NativeEndian.PutUint64(w.memory[at+8*i:], uint64(index))
	}
	w.at += aligned(8 * len(indices))
	return w.first + int64(at)
}

// bytesOf returns the memory of a slice as bytes, without a copy.
func bytesOf[T int64 | int32 | bool](s []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(one)))
}
