package arrow

import "encoding/binary"

// flatbuffer reads a buffer in the format of FlatBuffers (https://flatbuffers.dev/internals), which has Arrow's
// metadata. Offsets in it are untrusted. A read outside of the buffer returns zeros and sets bad, so a reader needs
// a single check, at its end.
type flatbuffer struct {
	b   []byte
	bad bool
}

// bytes returns the n bytes at a position. Outside of the buffer it returns up to 8 zeros, the size of the largest
// number.
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

// table is a table at a position in a buffer. nil is an absent table, whose fields are absent, too.
type table struct {
	*flatbuffer
	at int
}

// root returns the root table, whose offset is at the beginning of the buffer.
func (f *flatbuffer) root() *table { return &table{f, f.int32(0)} }

// field returns the position of field n, or 0 if it is absent and has its default. The vtable has the offset of
// each field, and ends early if the last fields are absent.
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

// number returns field n, a signed integer of size bytes (1, 2, 4 or 8), or otherwise if it is absent.
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

// table returns field n, a table; nil if it is absent.
func (t *table) table(n int) *table {
	at := t.field(n)
	if at == 0 {
		return nil
	}
	return &table{t.flatbuffer, at + t.int32(at)}
}

// vector returns the position of the first element and the number of elements of field n, a vector of elements of
// size bytes. The vector is checked to be inside of the buffer.
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

// tables returns field n, a vector of tables.
func (t *table) tables(n int) (list []*table) {
	at, count := t.vector(n, 4)
	for i := range count {
		list = append(list, &table{t.flatbuffer, at + 4*i + t.int32(at+4*i)})
	}
	return list
}

// text returns field n, a string; "" if it is absent.
func (t *table) text(n int) string {
	at, count := t.vector(n, 1)
	if count == 0 {
		return ""
	}
	return string(t.bytes(at, count))
}
