package zarr

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Extent is a run of records in a file that are stored uncompressed, one after the other.
type Extent struct {
	Name   string // of the file
	Offset int64  // bytes
	Count  int64  // records
}

// mostExtents limits how many files of an array are mapped. An array in more files is read through package chunk.
const mostExtents = 16 << 10

// Extents returns where the records are in files, if all are stored as they are in memory: chunks have whole
// records, no codec changed them, and each was written. Otherwise it returns nil.
func (a *Array) Extents() ([]Extent, error) {
	p := &a.coding
	rows := chunksOn(a.Shape[0], a.Chunks[0])
	if a.Err != nil || len(p.steps) > 0 || p.order != nil || p.swap > 0 || !slices.Equal(a.Chunks[1:], a.Shape[1:]) ||
		rows > 100*mostExtents {
		return nil, a.Err
	}
	var list []Extent
	open := file{a: a}
	defer open.close()
	for i := range rows {
		at := a.placeOf(i)
		if err := open.seek(at.name); err != nil || open.File == nil {
			return nil, err
		}
		e := Extent{at.name, 0, min(a.Chunks[0], a.Shape[0]-i*a.Chunks[0])}
		n, ok := open.size, true
		if a.shard != nil {
			x, err := a.shard.find(at.name, open, open.size)
			if err == nil {
				e.Offset, n, ok, err = x.extent(at.inner, open.size)
			}
			if err != nil {
				return nil, err
			}
		}
		if !ok || n != int64(p.size) || e.Offset%int64(a.number.dtype.Size()) != 0 || len(list) == mostExtents {
			return nil, nil // where that is wrong, reading says so
		}
		list = joinExtent(list, e, int64(p.size)/a.Chunks[0], a.Chunks[0])
	}
	return list, nil
}

// joinExtent appends an extent to the list, or makes the last extent longer if the new extent begins where the last
// one ends.
func joinExtent(list []Extent, e Extent, record, chunk int64) []Extent {
	if n := len(list); n > 0 {
		if last := &list[n-1]; last.Name == e.Name && last.Count%chunk == 0 && last.Offset+last.Count*record == e.Offset {
			last.Count += e.Count
			return list
		}
	}
	return append(list, e)
}

// file reads many files, one after the other, and has at most one of them open.
type file struct {
	File
	a    *Array
	name string
	size int64
}

// seek opens the file of a name, unless it is the open one. File is nil if no such file exists.
func (f *file) seek(name string) (err error) {
	if f.name == name {
		return nil
	}
	if err := f.close(); err != nil {
		return err
	}
	f.name = name
	f.File, f.size, err = open(f.a.files, name)
	return err
}

func (f *file) close() (err error) {
	if f.File != nil {
		err = f.File.Close()
		f.File = nil
	}
	return err
}

// ShardNames yields the names of the files of the array's shards. The shards must have whole rows.
func (a *Array) ShardNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		if a.shard == nil || a.shard.chunks != int(a.shard.per[0]) || !slices.Equal(a.Chunks[1:], a.Shape[1:]) {
			return
		}
		for row := int64(0); row < a.Shape[0] && yield(a.placeOf(row/a.Chunks[0]).name); row += a.Shards[0] {
		}
	}
}

// IndexBytes returns the size of the index at the start of each shard. It is 0 if the index is at the end.
func (a *Array) IndexBytes() int64 {
	if a.shard == nil || !a.shard.atStart {
		return 0
	}
	return a.shard.indexBytes()
}

// ShardBytes returns how many bytes a shard must have by its index. A copy of a shard needs no more bytes.
func (a *Array) ShardBytes(name string) (n int64, err error) {
	f, size, err := open(a.files, name)
	if err != nil || f == nil {
		return 0, err
	}
	defer f.Close()
	x, err := a.shard.read(f, size)
	if err != nil {
		return 0, err
	}
	for i := range a.shard.chunks {
		at, bytes, ok, err := x.extent(i, math.MaxInt64)
		if err != nil {
			return 0, err
		}
		if ok {
			n = max(n, at+bytes)
		}
	}
	return n, nil
}

// CheckPadding makes sure that the bytes of shards that are neither their index, nor chunks, nor rows of chunks that
// are stored as they are, are zeros, as this package writes them. It returns how many bytes besides chunks it has
// checked.
func (a *Array) CheckPadding() (looked int64, err error) {
	row := int64(0)
	for name := range a.ShardNames() {
		n, err := a.checkShard(name, row)
		row += a.Shards[0]
		if looked += n; err != nil {
			return looked, fmt.Errorf("%s: %w", name, err)
		}
	}
	return looked, nil
}

// checkShard checks the shard that begins at a row.
func (a *Array) checkShard(name string, row int64) (looked int64, err error) {
	f, size, err := open(a.files, name)
	if err != nil {
		return 0, err
	}
	if f == nil {
		return 0, corrupt("it is missing")
	}
	defer f.Close()
	x, err := a.shard.read(f, size)
	if err != nil {
		return 0, err
	}
	at := a.shard.indexBytes()
	looked = at
	for i := range a.shard.chunks {
		offset, n, ok, err := x.extent(i, size)
		if err != nil {
			return looked, err
		}
		rows := min(a.Chunks[0], a.Shape[0]-row-int64(i)*a.Chunks[0])
		if ok != (rows > 0) || ok && offset < at {
			return looked, corrupt("chunk %d is not where it was written", i)
		}
		if !ok {
			break
		}
		if err := zeros(f, at, offset); err != nil {
			return looked, err
		}
		looked += offset - at
		if len(a.coding.steps) == 0 {
			n = min(n, rows*int64(a.coding.size)/a.Chunks[0])
		}
		at = offset + n
	}
	return looked + size - at, zeros(f, at, size)
}

// zeros makes sure that the bytes [from, to) of a file are zeros.
func zeros(f File, from, to int64) error {
	var buf [4096]byte
	for from < to {
		b := buf[:min(to-from, int64(len(buf)))]
		if err := readFull(f, b, from); err != nil {
			return err
		}
		for i, x := range b {
			if x != 0 {
				return corrupt("byte %d is %#x, was 0 when it was written", from+int64(i), x)
			}
		}
		from += int64(len(b))
	}
	return nil
}

// Stored returns the total size of all files of the array.
func (a *Array) Stored() (total int64, err error) {
	open := file{a: a}
	defer open.close()
	rows := int64(1)
	for i, n := range a.Shape {
		if rows *= chunksOn(n, a.Chunks[i]); rows > 100*mostExtents {
			return 0, unsupported("more than %d chunks of values that are needed as a whole", 100*mostExtents)
		}
	}
	for i := range rows {
		if at := a.placeOf(i); at.name != open.name {
			if err := open.seek(at.name); err != nil {
				return total, err
			}
			if open.File != nil {
				total += open.size
			}
		}
	}
	return total, nil
}
