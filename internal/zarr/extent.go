package zarr

import "slices"

// Extent is records that are stored as they are, one after the other, in a file.
type Extent struct {
	Name   string // of the file
	Offset int64  // bytes
	Count  int64  // records
}

// mostExtents is how many files of an array are worth being mapped.
const mostExtents = 16 << 10

// Extents returns where the records are in files, if all are stored as they are in memory: chunks have whole
// records, no codec changed them, and each was written. Otherwise it returns nil.
func (a *Array) Extents() ([]Extent, error) {
	p := &a.coding
	rows := chunksOn(a.Shape[0], a.Chunks[0])
	if a.Err != nil || len(p.steps) > 0 || p.order != nil || p.swap > 0 || !slices.Equal(a.Chunks[1:], a.Shape[1:]) || rows > 100*mostExtents {
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

// joinExtent appends an extent, or makes the last one longer that ends where it begins.
func joinExtent(list []Extent, e Extent, record, chunk int64) []Extent {
	if n := len(list); n > 0 {
		if last := &list[n-1]; last.Name == e.Name && last.Count%chunk == 0 && last.Offset+last.Count*record == e.Offset {
			last.Count += e.Count
			return list
		}
	}
	return append(list, e)
}

// file is one file after the other.
type file struct {
	File
	a    *Array
	name string
	size int64
}

// seek opens the file of that name, unless it is open. File is nil if there is none.
func (f *file) seek(name string) (err error) {
	if f.name == name {
		return nil
	}
	if err := f.close(); err != nil {
		return err
	}
	f.name = name
	f.File, f.size, err = f.a.open(name)
	return err
}

func (f *file) close() (err error) {
	if f.File != nil {
		err = f.File.Close()
		f.File = nil
	}
	return err
}
