package mmapds_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
)

// TestWhere reads records at the places that Where names.
func TestWhere(t *testing.T) {
	flat := open(t, build(t, 1500))
	defer flat.Close()
	hdf5 := open(t, h5test.File(t, `    f["images"] = np.arange(600, dtype="u1").reshape(200, 3)`))
	defer hdf5.Close()
	for _, ds := range []*mmapds.Dataset{flat, hdf5} {
		for _, i := range []int{0, 1, ds.Len() / 2, ds.Len() - 1} {
			v, err := ds.Slice("images", i, i+1)
			require.NoError(t, err)
			checkAt(t, ds.Location("images", i), v.Bytes())
		}
	}
	ragged := open(t, buildRagged(t, 600))
	defer ragged.Close()
	for _, i := range []int{0, 50, 333, 599} {
		v, err := ragged.SliceRagged("tokens", i, i+1, make([]int64, 2))
		require.NoError(t, err)
		checkAt(t, ragged.Location("tokens", i), v.Bytes())
	}
}

// checkAt compares the bytes at a place.
func checkAt(t *testing.T, where string, want []byte) {
	t.Helper()
	path, rest, _ := strings.Cut(where, ", shard ")
	var shard, at int
	if _, err := fmt.Sscanf(rest, "%d, byte %v", &shard, &at); err != nil {
		t.Fatalf("%q: %v", where, err)
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if at > len(data) || !bytes.HasPrefix(data[at:], want) {
		t.Errorf("%q: the record is not there", where)
	}
}

// TestWhereNot asks for records that are nowhere, and for chunks.
func TestWhereNot(t *testing.T) {
	ds := open(t, h5test.File(t, `
    f.create_dataset("z", data=np.arange(100), chunks=(10,), compression="gzip")
`))
	if a, b, c := ds.Location("z", 10), ds.Location("z", 19), ds.Location("z", 20); a == "" || a != b || b == c {
		t.Errorf("of one chunk %q and %q, of the next %q", a, b, c)
	}
	for name, i := range map[string]int{"none": 0, "z": 100} {
		if got := ds.Location(name, i); got != "" {
			t.Errorf("%s, record %d: %q", name, i, got)
		}
	}
	require.NoError(t, ds.Close())
	if got := ds.Location("z", 0); got != "" {
		t.Errorf("after Close: %q", got)
	}
	ragged := open(t, buildRagged(t, 3))
	defer ragged.Close()
	if got := ragged.Location("nothing", 2); got != "" {
		t.Errorf("a field without a row: %q", got)
	}
}
