package hdf5

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func TestColumnHasItsRoomOnly(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	require.NoError(t, err)
	defer f.Close()
	c := column{file: f, start: 100, room: 10}
	require.NoError(t, c.append(make([]byte, 7)))
	if c.append(make([]byte, 4)) == nil {
		t.Error("11 bytes into 10")
	}
	require.NoError(t, errors.Join(c.append(make([]byte, 3)), c.flush()))
	other := column{file: f, start: 0, room: 9}
	if other.copyFrom(&c) == nil {
		t.Error("10 bytes copied into 9")
	}
}
