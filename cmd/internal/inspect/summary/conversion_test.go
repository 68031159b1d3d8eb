package summary

import (
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

// A file with data that cannot be used in place has conversions, and its datasets have their storage.
func TestConversionsOfSmallFiles(t *testing.T) {
	s, err := Describe(datasettest.SmallHDF5("new-chunks"))
	require.NoError(t, err)
	if len(s.Conversions) == 0 {
		t.Fatal("no command")
	}
	for _, m := range s.Conversions {
		if m.Gain < 1 || m.Records == 0 || len(m.Datasets) == 0 || !strings.HasPrefix(m.Command, "penstock preprocess "+datasettest.SmallHDF5("new-chunks")) {
			t.Errorf("%+v", m)
		}
	}
	for _, n := range s.Tree {
		if n.Kind != "dataset" {
			continue
		}
		if n.Storage == nil || n.Storage.Header <= 0 || n.Storage.Links < 1 || (n.Layout == "chunked") != (n.Storage.Chunks != nil) {
			t.Errorf("%s: %+v", n.Path, n.Storage)
		}
	}
}

// The summary lists a dataset that penstock does not read with its place, the reason, and the command
// that rewrites it. The command that converts the rest leaves it out.
func TestRepackOfWhatIsNotRead(t *testing.T) {
	path := h5test.File(t, `
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    p.set_chunk((10,))
    p.set_shuffle()
    p.set_scaleoffset(h5py.h5z.SO_INT, 0)
    h5py.Dataset(h5py.h5d.create(f.id, b"offset", h5py.h5t.STD_I64LE, h5py.h5s.create_simple((100,)), p))[:] = np.arange(100)
    f.create_dataset("packed", data=np.arange(100), chunks=(10,), compression="gzip")
    f.create_dataset("names", data=["a"] * 100)
`)
	s, err := Describe(path)
	require.NoError(t, err)
	to := strings.TrimSuffix(path, ".h5")
	want := []Repack{{Command: "h5repack -f NONE " + path + " " + to + "-repacked.h5", Datasets: []string{"offset"}, Reasons: []string{s.Tree[2].Storage.Unread}}}
	if !reflect.DeepEqual(s.Repacks, want) || !strings.HasPrefix(want[0].Reasons[0], "filter scaleoffset(") {
		t.Errorf("%+v, want %+v", s.Repacks, want)
	}
	if c := s.Tree[2].Storage.Chunks; c == nil || c.Stored != 10 || s.Tree[2].Storage.Stored == 0 {
		t.Errorf("%+v", s.Tree[2].Storage)
	}
	if len(s.Conversions) != 1 || s.Conversions[0].Command != "penstock preprocess "+path+" "+to+"-mapped.h5 --fields names,packed" {
		t.Errorf("%+v", s.Conversions)
	}
	var b strings.Builder
	require.NoError(t, s.Render(&b, 0))
	for _, line := range []string{"\nTo read it\n  h5repack -f NONE ", "      offset: filter scaleoffset(", "is not read: filter scaleoffset(", "preprocess reads it: text"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %q in\n%s", line, &b)
		}
	}
}
