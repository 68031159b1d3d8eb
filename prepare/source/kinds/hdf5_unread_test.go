package kinds

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/prepare/source"
)

// A virtual dataset has the numbers of its sources in its own type, where that has them all, and is refused where it has not, or
// where a source is missing.
func TestVirtualSources(t *testing.T) {
	dir := t.TempDir()
	pythontest.Run(t, "import h5py", "-c", `
import sys, h5py, numpy as np
dir = sys.argv[1]
def view(name, dtype, path="x", file="s.h5"):
    with h5py.File(f"{dir}/{name}.h5", "w", libver="latest") as f:
        l = h5py.VirtualLayout((6, 2), dtype)
        l[:] = h5py.VirtualSource(file, path, (6, 2))
        f.create_virtual_dataset("v", l)
with h5py.File(f"{dir}/s.h5", "w") as f:
    for t in "i1", "u1", "i2", ">u2", "i4", "i8", "u8", "f4", "f8":
        f[t.strip(">") if t != ">u2" else "big"] = (np.arange(12) - (5 if t[-2] in "if" else 0)).astype(t).reshape(6, 2)
    f["texts"] = np.array([[b"aa", b"bb"]] * 6)
    f["one"] = 5
for to in "i2", "i8", "f4", "f8", ">f8":
    for path in "i1", "i2", "u1", "big", "i4", "i8", "f4":
        view(f"{path}-{to.replace('>', 'b')}", to, path)
view("missing", "i4", "nothing")
view("gone", "i4", "x", "lost.h5")
view("texts", "i4", "texts")
view("one", "i4", "one")
`, dir)
	open := func(name string) (first []float64, err error) {
		s, err := Open(t.Context(), filepath.Join(dir, name+".h5"), source.Options{})
		if err != nil {
			return nil, err
		}
		defer s.Close()
		v := source.NewValues(1)
		for sample, err := range s.Samples() {
			if err == nil {
				err = sample.Data.Read(v)
			}
			if err != nil {
				return nil, err
			}
			b := v.Get(0)
			switch f := s.Info().Fields[0]; f.DType.String() {
			case "int16":
				first = append(first, float64(int16(binary.LittleEndian.Uint16(b))))
			case "int64":
				first = append(first, float64(int64(binary.LittleEndian.Uint64(b))))
			case "float32":
				first = append(first, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
			case "float64":
				first = append(first, math.Float64frombits(binary.LittleEndian.Uint64(b)))
			}
		}
		return first, nil
	}
	converted := 0
	for _, to := range []string{"i2", "i8", "f4", "f8", "bf8"} {
		for _, from := range []string{"i1", "i2", "u1", "big", "i4", "i8", "f4"} {
			got, err := open(from + "-" + to)
			if err != nil {
				if !strings.Contains(err.Error(), "cannot hold all its values") {
					t.Errorf("%s as %s: %v", from, to, err)
				}
				continue
			}
			converted++
			low := 5.0
			if from == "u1" || from == "big" {
				low = 0
			}
			for i, x := range got {
				if x != float64(2*i)-low {
					t.Errorf("%s as %s: %v", from, to, got)
					break
				}
			}
			if len(got) != 6 {
				t.Errorf("%s as %s: %d records", from, to, len(got))
			}
		}
	}
	if converted != 26 {
		t.Errorf("%d pairs of types were read", converted)
	}
	for name, want := range map[string]string{"missing": "nothing", "gone": "the file does not exist", "texts": "cannot hold all its values", "one": "a single value"} {
		if _, err := open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// Datasets of HDF5 that have a value for each record and cannot become a field are an error, unless others are chosen.
func TestUnreadDatasets(t *testing.T) {
	dir := t.TempDir()
	pythontest.Run(t, "import h5py", "-c", `
import sys, h5py, numpy as np
dir = sys.argv[1]
for name, d in dict(lists=((6, 2), h5py.vlen_dtype("i4")), other=((3, 2), h5py.vlen_dtype("i4")), scalar=((), "i4")).items():
    with h5py.File(f"{dir}/{name}.h5", "w") as f:
        f["labels"] = np.arange(6)
        f.create_dataset("images", *d)
`, dir)
	for name, want := range map[string]string{"lists": "several lists", "other": "", "scalar": ""} {
		path := filepath.Join(dir, name+".h5")
		s, err := Open(t.Context(), path, source.Options{})
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--fields labels") {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		case err != nil || len(s.Info().Hints) != 1:
			t.Errorf("%s: %v", name, err)
		}
		mustOpen(t, path, source.Options{Fields: "labels"}).Close()
	}
}
