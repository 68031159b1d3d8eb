package meta

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

// far is a file for which each read takes a trip, unless it was announced.
type far struct {
	io.ReaderAt
	reported []Extent
	trips    int
	bytes    int64
}

func (f *far) Announce(parts []Extent) {
	f.trips++
	for _, p := range parts {
		f.bytes += p.Size
	}
	f.reported = append(f.reported, parts...)
}

func (f *far) ReadAt(p []byte, off int64) (int, error) {
	known := false
	for _, e := range f.reported {
		known = known || e.Offset <= off && off+int64(len(p)) <= e.Offset+e.Size
	}
	if !known {
		f.trips++
		f.bytes += int64(len(p))
	}
	return f.ReaderAt.ReadAt(p, off)
}

// An index of thousands of chunks, whose parts are all over the file, takes a few trips.
func TestForetoldIndexes(t *testing.T) {
	for _, c := range []struct {
		name, script string
		kind         indexKind
	}{
		{"B-tree v1", "maxshape=(None, 4)", bTreeV1},
		{"fixed array", "", fixedArray},
		{"extensible array", "maxshape=(None, 4)", extensibleArray},
		{"B-tree v2", "maxshape=(None, None)", bTreeV2},
	} {
		t.Run(c.name, func(t *testing.T) {
			version := "latest"
			if c.kind == bTreeV1 {
				version = "earliest"
			}
			text, err := os.ReadFile(h5test.File(t, "    pass\n"+
				"with h5py.File(sys.argv[1], 'w', libver='"+version+"') as f:\n"+
				"    d = f.create_dataset('x', (5000, 4), 'i4', chunks=(1, 4), compression='gzip', "+c.script+")\n"+
				"    d[...] = np.arange(20000).reshape(5000, 4)\n"))
			require.NoError(t, err)
			r := &far{ReaderAt: bytes.NewReader(text)}
			f, err := Open(r, int64(len(text)))
			require.NoError(t, err)
			d, err := f.Dataset("x")
			require.NoError(t, err)
			if d.Layout.Index != c.kind {
				t.Fatalf("the index is a %v", d.Layout.Index)
			}
			r.trips, r.bytes = 0, 0
			table, err := d.Chunks()
			if err != nil || len(table.Chunks) != 5000 {
				t.Fatalf("%d chunks, error %v", len(table.Chunks), err)
			}
			index := int64(0)
			for _, e := range table.Index {
				index += e.Size
			}
			t.Logf("%d parts of %d bytes in %d trips, %d bytes asked for", len(table.Index), index, r.trips, r.bytes)
			if r.trips > 10 || r.bytes > 2*index {
				t.Errorf("%d trips and %d bytes for an index of %d", r.trips, r.bytes, index)
			}
		})
	}
}
