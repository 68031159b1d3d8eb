package summary

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

// Every object has as many links as libhdf5 counts, and its modification time if that is stored.
func TestObjectsAreThoseOfH5py(t *testing.T) {
	for _, libver := range []string{"earliest", "latest"} {
		path := filepath.Join(t.TempDir(), "x.h5")
		born := time.Now().Truncate(time.Second)
		out := h5test.Run(t, "-c", `
import sys, json, h5py, numpy as np
with h5py.File(sys.argv[1], "w", libver=sys.argv[2], track_order=False) as f:
    f["kind"] = np.dtype("i4")
    d = f.create_dataset("x", (3,), dtype=f["kind"], track_times=True)
    f["g/again"] = f["h"] = d
    f.create_dataset("plain", (3,), "S4", track_times=False)
    f.create_dataset("pairs", (3,), np.dtype([("a", "i1"), ("b", "f8")], align=True))
with h5py.File(sys.argv[1]) as f:
    reported = {}
    for name in ["/", "/kind", "/x", "/g", "/g/again", "/h", "/plain"]:
        reported[name] = h5py.h5o.get_info(f[name].id).rc
    print(json.dumps(reported))`, path, libver)
		var want map[string]int
		require.NoError(t, json.Unmarshal(out, &want))
		s, err := Describe(path)
		require.NoError(t, err)
		compared := 0
		for _, n := range s.Tree {
			w, reported := want[n.Path]
			if !reported {
				continue
			}
			compared++
			if n.Links != w || n.Header <= 0 {
				t.Errorf("%s: %s: %d links, h5py says %d; header at %d", libver, n.Path, n.Links, w, n.Header)
			}
			if dated := n.Path == "/x" || n.Path == "/h" || n.Path == "/g/again"; dated && (n.Modified == nil || n.Modified.Before(born)) || n.Path == "/plain" && n.Modified != nil {
				t.Errorf("%s: %s: changed %v", libver, n.Path, n.Modified)
			}
			if named := n.Path == "/x" || n.Path == "/h" || n.Path == "/g/again"; n.Named != named {
				t.Errorf("%s: named type %v", n.Path, n.Named)
			}
			if n.Path == "/plain" && n.Padding != "null-padded" {
				t.Errorf("padding %q", n.Padding)
			}
		}
		if compared != 7 {
			t.Errorf("%s: %d objects of 7 compared", libver, compared)
		}
		var b strings.Builder
		require.NoError(t, s.Render(&b, 0))
		for _, line := range []string{"named int32 (3,)", "compound{a: int8, b: float64 at 8} (3,)", "\n  g/ ", "fill value", "changed\n"} {
			if !strings.Contains(b.String(), line) {
				t.Errorf("%s: no %q in\n%s", libver, line, &b)
			}
		}
	}
}

// The summary says that a file was not closed by its writer, or that it has a user block.
func TestContainerIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "it's.h5")
	h5test.Run(t, "-c", `
import sys, shutil, h5py
with h5py.File(sys.argv[1] + "x", "w", libver="latest", userblock_size=512) as f:
    f["x"] = 1
    f.flush()
    shutil.copy(sys.argv[1] + "x", sys.argv[1])`, path)
	s, err := Describe(path)
	require.NoError(t, err)
	if s.HDF5 == nil || *s.HDF5 != (Container{Superblock: 3, UserBlock: 512, WriteOpen: true}) {
		t.Errorf("%+v", s.HDF5)
	}
	var b strings.Builder
	require.NoError(t, s.Render(&b, 0))
	for _, line := range []string{"HDF5 with superblock 3 after a user block of 512 bytes, not made by penstock", `h5clear -s '` + strings.ReplaceAll(path, "'", `'\''`) + "'"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %q in\n%s", line, &b)
		}
	}
	require.NoError(t, os.Remove(path))
}

// A file of groups shows the records that the loader reads, and where else they may be, or the choices that it leaves.
func TestRecordsInGroups(t *testing.T) {
	for _, c := range []struct{ script, records string }{
		{"    for i in range(3):\n        f[f'data/demo_{i}/a'] = np.zeros((i + 2, 3))\n        f[f'data/demo_{i}/obs/x'] = np.zeros(i + 2)\n",
			"9: each row of data/* is a record, as if asked for by --records 'data/*[:]'; the other choice is --records 'data/*'"},
		{"    for i in range(3):\n        f[f's{i}/a'] = np.zeros(i + 2)\n        f[f's{i}/n'] = i\n",
			"3: each of * is a record, as if asked for by --records '*'; the other choice is --records '*[:]'"},
		{"    f['x'] = np.zeros(2)\n    f['y'] = np.zeros(3)\n", "is a record each row of them: --records '*[:]', or each of them: --records '*'?"},
	} {
		s, err := Describe(h5test.File(t, c.script))
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, s.Render(&b, 0))
		if text := b.String(); !strings.Contains(text, c.records) || strings.Contains(text, "not as a whole") || (s.Samples != nil) != strings.Contains(text, "\nFields\n") {
			t.Errorf("want %q:\n%s", c.records, text)
		}
	}
}
