package tensor

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestShapeString(t *testing.T) {
	for want, s := range map[string]Shape{"()": nil, "(3,)": {3}, "(3, 224, 224)": {3, 224, 224}} {
		if s.String() != want {
			t.Errorf("%v, want %s", s, want)
		}
	}
	if n := (Shape{3, 4, 5}).Elems(); n != 60 {
		t.Errorf("%d elements", n)
	}
}

func TestSpecValidate(t *testing.T) {
	good := Spec{Name: "x", DType: Float32, Shape: Shape{3, 4}}
	if err := good.Validate(); err != nil || good.RecordBytes() != 48 {
		t.Errorf("%v, %d bytes", err, good.RecordBytes())
	}
	for want, s := range map[string]Spec{
		"no name":          {DType: Uint8},
		"no dtype":         {Name: "x"},
		"at most 7":        {Name: "x", DType: Uint8, Shape: Shape{1, 1, 1, 1, 1, 1, 1, 1}},
		"must be positive": {Name: "x", DType: Uint8, Shape: Shape{3, 0}},
		"smaller than":     {Name: "x", DType: Uint8, Shape: Shape{1 << 30, 1 << 30, 1 << 30}},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// words returns aligned bytes 0, 1, 2, ...
func words(n int) []byte {
	w := make([]uint64, (n+7)/8)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), len(w)*8)[:n]
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func TestView(t *testing.T) {
	data := words(24)
	v := Of(Spec{Name: "x", DType: Uint16, Shape: Shape{2, 2}}, 3, data)
	if v.Len() != 3 || v.Rank() != 3 || v.Dim(2) != 2 || v.DType() != Uint16 || !slices.Equal(v.Shape(), Shape{3, 2, 2}) {
		t.Errorf("%d records, rank %d, %v", v.Len(), v.Rank(), v.Shape())
	}
	part := v.Slice(1, 3)
	if part.Len() != 2 || !bytes.Equal(part.Bytes(), data[8:]) || cap(part.Bytes()) != 16 {
		t.Errorf("records [1, 3): %v", part.Bytes())
	}
	if x := As[uint16](part); len(x) != 8 || x[0] != 0x0908 {
		t.Errorf("%#x", x)
	}
	if empty := v.Slice(1, 1); empty.Len() != 0 || As[uint16](empty) != nil {
		t.Errorf("%v", empty)
	}
	if n := testing.AllocsPerRun(10, func() { As[uint16](Of(Spec{DType: Uint16, Shape: Shape{2, 2}}, 3, data).Slice(1, 2)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestViewOfEveryType(t *testing.T) {
	data := words(16)
	check := func(d DType, ok bool) {
		if !ok {
			t.Errorf("%v: wrong elements", d)
		}
	}
	of := func(d DType) View { return Of(Spec{Name: "x", DType: d}, 16/d.Size(), data) }
	check(Uint8, As[uint8](of(Uint8))[15] == 15)
	check(Bool, As[uint8](of(Bool))[15] == 15)
	check(Int8, As[int8](of(Int8))[15] == 15)
	check(Uint16, As[uint16](of(Uint16))[7] == 0x0f0e)
	check(Int16, As[int16](of(Int16))[7] == 0x0f0e)
	check(Uint32, As[uint32](of(Uint32))[3] == 0x0f0e0d0c)
	check(Int32, As[int32](of(Int32))[3] == 0x0f0e0d0c)
	check(Uint64, As[uint64](of(Uint64))[1] == 0x0f0e0d0c0b0a0908)
	check(Int64, As[int64](of(Int64))[1] == 0x0f0e0d0c0b0a0908)
	check(Float16, As[Half](of(Float16))[7] == 0x0f0e)
	check(BFloat16, As[Brain](of(BFloat16))[7] == 0x0f0e)
	check(Float32, len(As[float32](of(Float32))) == 4)
	check(Float64, len(As[float64](of(Float64))) == 2)
}

func TestMisusePanics(t *testing.T) {
	data := words(16)
	spec := Spec{Name: "x", DType: Uint32}
	for name, f := range map[string]func(){
		"wrong length": func() { Of(spec, 3, data) },
		"many axes":    func() { Of(Spec{DType: Uint8, Shape: make(Shape, MaxRank)}, 0, nil) },
		"other type":   func() { As[float32](Of(spec, 4, data)) },
		"bool as int8": func() { As[int8](Of(Spec{DType: Bool}, 16, data)) },
		"unaligned":    func() { As[uint32](Of(spec, 3, data[1:13])) },
		"slice":        func() { Of(spec, 4, data).Slice(3, 5) },
		"axis":         func() { Of(spec, 4, data).Dim(1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
