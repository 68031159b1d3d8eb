package mmapds_test

import (
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
)

// Records are warm once they were brought in, and not where they do not exist or must be checked.
func TestIsWarm(t *testing.T) {
	path := build(t, 100)
	ds := open(t, path)
	field := ds.Specs()[0].Name
	if ds.IsWarm(field, 10, 20) {
		t.Error("warm from the start")
	}
	require.NoError(t, ds.Warm(field, 10, 20))
	for _, c := range []struct {
		field string
		a, b  int
		want  bool
	}{
		{field, 10, 20, true}, {field, 12, 12, true},
		{field, -1, 5, false}, {field, 90, 101, false}, {field, 20, 10, false}, {"nothing", 10, 20, false},
	} {
		if got := ds.IsWarm(c.field, c.a, c.b); got != c.want {
			t.Errorf("records [%d, %d) of %q: %v", c.a, c.b, c.field, got)
		}
	}
	checked := openChecked(t, path, mmapds.VerifyAlways)
	require.NoError(t, checked.Warm(field, 10, 20))
	if checked.IsWarm(field, 10, 20) {
		t.Error("warm, although it is to be checked")
	}
	if allocs := testing.AllocsPerRun(100, func() { ds.IsWarm(field, 10, 20) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
