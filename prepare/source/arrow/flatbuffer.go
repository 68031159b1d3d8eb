package arrow

import "encoding/binary"

// flatbuffer is a buffer in the format of FlatBuffers (flatbuffers.dev/internals), like the metadata of Arrow.
// A place outside of it reads as zeros and makes it bad, so that a reader checks once, at its end.
type flatbuffer struct {
	b   []byte
	bad bool
}

// bytes returns n bytes from a place on.
func (f *flatbuffer) bytes(at, n int) []byte {
	if at < 0 || n < 0 || at > len(f.b) || n > len(f.b)-at {
		f.bad = true
		return make([]byte, min(max(n, 0), 8))
	}
	return f.b[at : at+n]
}

func (f *flatbuffer) uint16(at int) int { return int(binary.LittleEndian.Uint16(f.bytes(at, 2))) }
func (f *flatbuffer) int32(at int) int {
	return int(int32(binary.LittleEndian.Uint32(f.bytes(at, 4))))
}
func (f *flatbuffer) int64(at int) int64 {
	return int64(binary.LittleEndian.Uint64(f.bytes(at, 8)))
}

// table is a place in a buffer with fields; nil is one that is not there.
type table struct {
	*flatbuffer
	at int
}

// root returns the table that a buffer is.
func (f *flatbuffer) root() *table { return &table{f, f.int32(0)} }

// field returns the place of a field, 0 if the table has its default.
func (t *table) field(n int) int {
	if t == nil {
		return 0
	}
	vtable := t.at - t.int32(t.at)
	if at := 4 + 2*n; at+2 <= t.uint16(vtable) {
		if offset := t.uint16(vtable + at); offset != 0 {
			return t.at + offset
		}
	}
	return 0
}

// number returns a field of 1, 2, 4 or 8 bytes.
func (t *table) number(n, size int, otherwise int64) int64 {
	at := t.field(n)
	if at == 0 {
		return otherwise
	}
	switch size {
	case 1:
		return int64(int8(t.bytes(at, 1)[0]))
	case 2:
		return int64(int16(t.uint16(at)))
	case 4:
		return int64(t.int32(at))
	}
	return t.int64(at)
}

// table returns a field that is a table, nil if it is not there.
func (t *table) table(n int) *table {
	at := t.field(n)
	if at == 0 {
		return nil
	}
	return &table{t.flatbuffer, at + t.int32(at)}
}

// vector returns the place of the first element of a field, and how many elements of that size there are.
func (t *table) vector(n, size int) (at, count int) {
	if at = t.field(n); at == 0 {
		return 0, 0
	}
	at += t.int32(at)
	count = t.int32(at)
	if count < 0 || count > len(t.b)/size {
		t.bad = true
		return 0, 0
	}
	t.bytes(at+4, count*size)
	return at + 4, count
}

// tables returns a vector of tables.
func (t *table) tables(n int) (list []*table) {
	at, count := t.vector(n, 4)
	for i := range count {
		list = append(list, &table{t.flatbuffer, at + 4*i + t.int32(at+4*i)})
	}
	return list
}

// text returns a string.
func (t *table) text(n int) string {
	at, count := t.vector(n, 1)
	if count == 0 {
		return ""
	}
	return string(t.bytes(at, count))
}
