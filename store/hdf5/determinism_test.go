package hdf5

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// child is the variable by which a test runs a part of itself in a process of its own.
const child = "PENSTOCK_HDF5_TEST"

// rerun runs the calling test once more, with child set to value.
func rerun(t *testing.T, value string, env ...string) (stderr []byte) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(append(os.Environ(), child+"="+value), env...)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.Bytes(), diag.Bytes())
	}
	return diag.Bytes()
}

// The same records give the same bytes, at another time and on a heap of other garbage
// (which the C library of GNU makes: mallopt(3), M_PERTURB).
func TestSameBytes(t *testing.T) { eachContainer(t, testSameBytes) }

func testSameBytes(t *testing.T) {
	if path := os.Getenv(child); path != "" {
		built := buildFile(t, everyType(), 300, 300, store.Info{})
		also := buildFile(t, imageSchema(20, 20), 30, 40, store.Info{NormalizeByStatistics: true})
		require.NoError(t, os.WriteFile(path, append(read(t, built), read(t, also)...), 0o666))
		return
	}
	first := filepath.Join(t.TempDir(), "first")
	second := filepath.Join(t.TempDir(), "second")
	rerun(t, first, "MALLOC_PERTURB_=85")
	time.Sleep(1100 * time.Millisecond) // HDF5 counts time in seconds
	rerun(t, second, "MALLOC_PERTURB_=170")
	if !bytes.Equal(read(t, first), read(t, second)) {
		t.Error("two runs gave different bytes")
	}
}
