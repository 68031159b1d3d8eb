package upload

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
)

// Payload that looks like a marker is sent as it is.
func TestNoPayloadIsAStub(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x-00000.npy")
	data := slices.Concat(make([]byte, layout.HeaderBytes), []byte(markerMagic+`{"key":"elsewhere","size":8192,"crc32c":"00000000"}`+"\n"), make([]byte, 2*layout.HeaderBytes))[:2*layout.HeaderBytes]
	if err := errors.Join(os.WriteFile(path, data, part.FinalMode), os.Chmod(path, part.FinalMode)); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if s, ok := readMarker(path); ok {
		t.Errorf("taken for %+v", s)
	}
	want := marker{Key: "ds/x-00000.npy", Size: int64(len(data)), ETag: "7", CRC32C: "12345678"}
	require.NoError(t, want.replace(path))
	if got, ok := readMarker(path); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != want.Size {
		t.Errorf("its length has changed: %v %v", info, err)
	}
}
