package kinds

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// Files as h5py, netCDF4, PyTables, pandas and AnnData write them: every value of every field is the one that was written, in
// order and one by one.
func TestHDF5Fields(t *testing.T) {
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	var cases [][3]any
	require.NoError(t, json.Unmarshal(h5test.Run(t, "testdata/others_hdf5.py", t.TempDir()), &cases))
	t.Logf("%d files", len(cases))
	if len(cases) < 40 {
		t.Errorf("want at least 40")
	}
	for _, c := range cases {
		path, want := c[0].(string), c[2].(map[string]any)
		s, err := Open(t.Context(), path, source.Options{Kind: "hdf5", Fields: c[1].(string)})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got := digests(t, path, s)
		for name, sum := range want {
			if got[name] != sum {
				t.Errorf("%s: field %s: other values than were written", path, name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d fields, want %d: %v", path, len(got), len(want), s.Info().Fields)
		}
		require.NoError(t, s.Close())
	}
}

// digests returns the checksums of all values, by field.
func digests(t *testing.T, path string, s source.Source) map[string]any {
	t.Helper()
	fields := s.Info().Fields
	indexed, _ := s.(source.Indexed)
	v, one := source.NewValues(len(fields)), source.NewValues(len(fields))
	sums := make([]interface {
		Write([]byte) (int, error)
		Sum([]byte) []byte
	}, len(fields))
	for i := range sums {
		sums[i] = sha256.New()
	}
	n := int64(0)
	for sample, err := range s.Samples() {
		if err == nil {
			err = sample.Data.Read(v)
		}
		if err == nil && indexed != nil {
			if sample, err = indexed.Sample(n); err == nil {
				err = sample.Data.Read(one)
			}
		}
		if err != nil {
			t.Errorf("%s: record %d: %v", path, n, err)
			return nil
		}
		for i := range fields {
			b := v.Get(i)
			if indexed != nil && string(one.Get(i)) != string(b) {
				t.Errorf("%s: record %d, field %s: %q alone, %q in order", path, n, fields[i].Name, one.Get(i), b)
			}
			sums[i].Write(binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
			sums[i].Write(b)
		}
		n++
	}
	list := make(map[string]any)
	for i, f := range fields {
		list[f.Name] = hex.EncodeToString(sums[i].Sum(nil))
	}
	return list
}
