package meta

import (
	"errors"
	"fmt"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Of virtual datasets the sources are named, each once.
func TestSources(t *testing.T) {
	f := mustOpen(t, "testdata/small-new-virtual.h5")
	for path, want := range map[string]string{
		"rows": "[{. here} {a.h5 x} {b.h5 x} {b.h5 g/y}]", "mixed": "[{a.h5 long}]",
	} {
		d, err := f.Dataset(path)
		require.NoError(t, err)
		if list, err := d.Sources(); err != nil || fmt.Sprint(list) != want {
			t.Errorf("%s: %v, error %v; want %s", path, list, err, want)
		}
	}
	d, err := f.Dataset("here")
	require.NoError(t, err)
	if _, err := d.Sources(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("of a dataset that is not virtual: error %v", err)
	}
}

// libhdf5 2.0 writes names once, and hyperslabs with numbers of any size.
func TestSourceLists(t *testing.T) {
	all := []any{uint32(selectAll), uint32(1), uint64(0)}
	block := []any{uint32(selectHyperslabs), uint32(3), uint8(1), uint8(2), uint32(1), uint16(0), uint16(1), uint16(1),
		uint16(4)}
	blocks := []any{uint32(selectHyperslabs), uint32(1), uint64(0), uint32(1), uint32(2), uint32(0), uint32(1), uint32(4),
		uint32(5)}
	list := func(version uint8, sources ...[]any) *cursor {
		fields := []any{version, uint64(len(sources))}
		for _, s := range sources {
			fields = append(append(append(fields, s...), all...), block...)
		}
		return msgCursor(fields...)
	}
	for _, tt := range []struct {
		name string
		c    *cursor
		want string
		err  error
	}{
		{"names", list(0, []any{"a\x00", "x\x00"}, []any{"b\x00", "x\x00"}), "[{a x} {b x}]", nil},
		{"shared names", list(1, []any{uint8(0), "a\x00", "x\x00"}, []any{uint8(sourceOfFile), uint64(0), "y\x00"},
			[]any{uint8(sourceHere | sourceOfPath), uint64(1)}, []any{uint8(sourceOfFile | sourceOfPath), uint64(0), uint64(2)}),
			"[{a x} {a y} {. y} {a y}]", nil},
		{"blocks", msgCursor(append(append([]any{uint8(0), uint64(1), "a\x00", "x\x00"}, blocks...), all...)...), "[{a x}]", nil},
		{"name of a later source", list(1, []any{uint8(sourceOfFile), uint64(0), "y\x00"}), "[]", ErrCorrupt},
		{"version", list(2), "[]", ErrUnsupported},
		{"points", msgCursor(uint8(0), uint64(1), "a\x00", "x\x00", uint32(selectPoints), uint32(1)), "[]", ErrUnsupported},
		{"axes", msgCursor(uint8(0), uint64(1), "a\x00", "x\x00", uint32(selectHyperslabs), uint32(3), uint8(1), uint8(2), uint32(33)), "[]", ErrCorrupt},
		{"many blocks", msgCursor(uint8(0), uint64(1), "a\x00", "x\x00", uint32(selectHyperslabs), uint32(3), uint8(0), uint8(8), uint32(3), uint64(1<<62)), "[]", ErrCorrupt},
		{"hyperslabs of another version", msgCursor(uint8(0), uint64(1), "a\x00", "x\x00", uint32(selectHyperslabs), uint32(4)), "[]", ErrUnsupported},
	} {
		var sources []VirtualSource
		for _, m := range parseMappings(tt.c) {
			sources = append(sources, m.VirtualSource)
		}
		if got := fmt.Sprint(sources); got != tt.want || !errors.Is(tt.c.Err, tt.err) {
			t.Errorf("%s: %s, error %v; want %s, %v", tt.name, got, tt.c.Err, tt.want, tt.err)
		}
	}
}
