package meta

import (
	"errors"
	"fmt"
	"testing"

	"github.com/penstock/penstock/tensor"
)

// msgCursor returns a cursor over a message body, in a file with addresses of 8 bytes.
func msgCursor(fields ...any) *cursor {
	var w builder
	w.put(fields...)
	s := &source{Size: 1 << 20, OffSize: 8, LenSize: 8, Left: 1 << 20}
	return &cursor{Src: s, B: w.b, What: "message"}
}

// Layout messages of libhdf5 before 1.6, which current libraries do not write.
func TestOldLayouts(t *testing.T) {
	reserved := [5]uint8{}
	tests := []struct {
		name string
		c    *cursor
		want string
	}{
		{"contiguous", msgCursor(uint8(1), uint8(2), uint8(1), reserved, uint64(0x800), uint32(4), uint32(3)),
			"contiguous 1 offset 2048 size 0 chunks [] none -1"},
		{"not allocated", msgCursor(uint8(2), uint8(1), uint8(1), reserved, undef, uint32(4)),
			"contiguous 2 offset -1 size 0 chunks [] none -1"},
		{"chunked", msgCursor(uint8(1), uint8(3), uint8(2), reserved, uint64(0x900), uint32(10), uint32(20), uint32(4)),
			"chunked 1 offset -1 size 0 chunks [10 20] B-tree v1 2304"},
		{"compact", msgCursor(uint8(2), uint8(1), uint8(0), reserved, uint32(4), uint32(3), "abc"),
			"compact 2 offset 16 size 3 chunks [] none -1"},
	}
	for _, tt := range tests {
		l := parseLayout(tt.c)
		got := fmt.Sprintf("%v %d offset %d size %d chunks %v %v %d", l.Kind, l.Version, l.Offset, l.Size, l.ChunkDims,
			l.Index, l.IndexAt)
		if tt.c.Err != nil || got != tt.want {
			t.Errorf("%s: %s, error %v; want %s", tt.name, got, tt.c.Err, tt.want)
		}
	}
}

func TestFills(t *testing.T) {
	tests := []struct {
		name string
		c    *cursor
		want Fill
	}{
		{"version 1", msgCursor(uint8(1), uint8(2), uint8(0), uint8(1), uint32(2), "ab"), Fill{State: FillUser, Value: []byte("ab"), Alloc: "late", Write: "alloc"}},
		{"version 2 default", msgCursor(uint8(2), uint8(1), uint8(1), uint8(1), uint32(0)), Fill{State: FillDefault, Value: nil, Alloc: "early", Write: "never"}},
		{"version 2 undefined", msgCursor(uint8(2), uint8(3), uint8(2), uint8(0)), Fill{State: FillUndefined, Value: nil, Alloc: "incremental", Write: "ifset"}},
		{"version 3", msgCursor(uint8(3), uint8(0x2a), uint32(1), "x"), Fill{State: FillUser, Value: []byte("x"), Alloc: "late", Write: "ifset"}},
		{"version 3 undefined", msgCursor(uint8(3), uint8(0x1a)), Fill{State: FillUndefined, Value: nil, Alloc: "late", Write: "ifset"}},
	}
	for _, tt := range tests {
		got := parseFill(tt.c)
		if tt.c.Err != nil || fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %v, error %v; want %v", tt.name, got, tt.c.Err, tt.want)
		}
	}
}

// fixedHead is a datatype message of integers, of version v.
func fixedHead(v, size, flags int) []any {
	return []any{uint32(v<<4 | flags<<8), uint32(size), uint16(0), uint16(8 * size)}
}

func floatType(size, sign, expLoc, expSize, mantSize, bias int, flags uint32) *Datatype {
	return parseDatatype(msgCursor(uint32(0x11)|0x20<<8|uint32(sign)<<16|flags<<8, uint32(size), uint16(0),
		uint16(8*size),
		uint8(expLoc), uint8(expSize), uint8(0), uint8(mantSize), uint32(bias)))
}

func TestDatatypes(t *testing.T) {
	member := func(name string, at int, dims ...uint32) []any {
		var d [4]uint32
		copy(d[:], dims)
		return []any{name, make([]byte, 8-len(name)), uint32(at), uint8(len(dims)), [3]uint8{}, uint32(0), uint32(0), d}
	}
	compound := []any{uint32(0x16 | 2<<8), uint32(16)}
	compound = append(compound, member("a", 0)...)
	compound = append(compound, fixedHead(1, 4, 8)...)
	compound = append(compound, member("b", 4, 2, 3)...)
	compound = append(compound, fixedHead(1, 2, 1)...)

	tests := []struct {
		typ  *Datatype
		want string
		d    tensor.DType
	}{
		{parseDatatype(msgCursor(fixedHead(1, 4, 8)...)), "int32", tensor.Int32},
		{parseDatatype(msgCursor(fixedHead(3, 2, 1)...)), "big-endian uint16", tensor.Uint16},
		{parseDatatype(msgCursor(fixedHead(1, 3, 8)...)), "int[3] of 24 bits", tensor.Invalid},
		{parseDatatype(msgCursor(uint32(0x10), uint32(2), uint16(0), uint16(12))), "uint[2] of 12 bits", tensor.Uint16},
		{floatType(2, 15, 10, 5, 10, 15, 0), "float16", tensor.Float16},
		{floatType(2, 15, 7, 8, 7, 127, 0), "bfloat16", tensor.BFloat16},
		{floatType(4, 31, 23, 8, 23, 127, 1), "big-endian float32", tensor.Float32},
		{floatType(4, 31, 23, 8, 23, 127, 0x41), "vax-order float[4] of 32 bits (8 exponent, 23 mantissa)", tensor.Invalid},
		{floatType(1, 7, 3, 4, 3, 7, 0), "float[1] of 8 bits (4 exponent, 3 mantissa)", tensor.Invalid},
		{parseDatatype(msgCursor(compound...)), "compound{a: int32, b: array(2, 3) of big-endian uint16}", tensor.Invalid},
		{parseDatatype(msgCursor(uint32(0x14), uint32(1), uint16(0), uint16(8))), "bitfield[1]", tensor.Uint8},
		{parseDatatype(msgCursor(uint32(0x12), uint32(4), uint16(32))), "time[4]", tensor.Invalid},
		{parseDatatype(msgCursor(uint32(0x17|1<<8), uint32(12))), "region reference", tensor.Invalid},
	}
	for _, tt := range tests {
		if tt.typ == nil {
			t.Errorf("%s: not parsed", tt.want)
			continue
		}
		if got := tt.typ.String(); got != tt.want || tt.typ.DType() != tt.d {
			t.Errorf("%s %v, want %s %v", got, tt.typ.DType(), tt.want, tt.d)
		}
	}
}

// Gaps in a compound are shown.
func TestCompoundWithGaps(t *testing.T) {
	one, four := &Datatype{Class: Fixed, Size: 1,
		Precision: 8}, &Datatype{Class: Fixed, Size: 4, Precision: 32, Signed: true}
	for want, typ := range map[string]Datatype{
		"compound{a: uint8, b: int32}":          {Size: 5, Members: []Member{{Name: "a", Type: one}, {Name: "b", Offset: 1, Type: four}}},
		"compound{a: uint8, b: int32 at 4}":     {Size: 8, Members: []Member{{Name: "a", Type: one}, {Name: "b", Offset: 4, Type: four}}},
		"compound[16]{a: uint8, b: int32 at 4}": {Size: 16, Members: []Member{{Name: "a", Type: one}, {Name: "b", Offset: 4, Type: four}}},
		"compound[8]{b: int32 at 1}":            {Size: 8, Members: []Member{{Name: "b", Offset: 1, Type: four}}},
	} {
		if typ.Class = Compound; typ.String() != want {
			t.Errorf("%s, want %s", &typ, want)
		}
	}
}

func TestBadDatatypes(t *testing.T) {
	nested := []any{}
	for range maxTypeDepth + 2 {
		nested = append(nested, uint32(0x19), uint32(16))
	}
	tests := []struct {
		name string
		c    *cursor
		want error
	}{
		{"size 0", msgCursor(fixedHead(1, 0, 0)...), ErrCorrupt},
		{"bits outside", msgCursor(uint32(0x10), uint32(2), uint16(9), uint16(8)), ErrCorrupt},
		{"member outside", msgCursor(uint32(0x36|1<<8), uint32(4), "a\x00", uint8(3), uint32(0x10), uint32(4), uint16(0), uint16(32)), ErrCorrupt},
		{"complex of integers", msgCursor(uint32(0x5b), uint32(8), uint32(0x10), uint32(4), uint16(0), uint16(32)), ErrCorrupt},
		{"compound without members", msgCursor(uint32(0x36), uint32(4)), ErrCorrupt},
		{"enum of floats", msgCursor(uint32(0x18), uint32(2), uint32(0x13), uint32(2)), ErrCorrupt},
		{"array of another size", msgCursor(uint32(0x3a), uint32(9), uint8(1), uint32(2), uint32(0x10), uint32(4), uint16(0), uint16(32)), ErrCorrupt},
		{"array of 2^96 elements", msgCursor(uint32(0x3a), uint32(8), uint8(3), uint32(1<<31), uint32(1<<31), uint32(1<<31), uint32(0x10), uint32(1), uint16(0), uint16(8)), ErrCorrupt},
		{"version 9", msgCursor(uint32(0x90), uint32(1), uint16(0), uint16(8)), ErrUnsupported},
		{"class 13", msgCursor(uint32(0x1d), uint32(1)), ErrUnsupported},
		{"nested", msgCursor(nested...), ErrUnsupported},
		{"short", msgCursor(uint32(0x10), uint32(1), uint16(0)), ErrCorrupt},
	}
	for _, tt := range tests {
		if typ := parseDatatype(tt.c); typ != nil || !errors.Is(tt.c.Err, tt.want) {
			t.Errorf("%s: %v, error %v; want %v", tt.name, typ, tt.c.Err, tt.want)
		}
	}
}

// Values of lookup3.c's own test: hashlittle of "" is 0xdeadbeef, of the sentence 0x17770551.
func TestLookup3(t *testing.T) {
	if got := Checksum(nil); got != 0xdeadbeef {
		t.Errorf("%08x of nothing", got)
	}
	if got := Checksum([]byte("Four score and seven years ago")); got != 0x17770551 {
		t.Errorf("%08x of the sentence", got)
	}
}
