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
	if err := c.append(make([]byte, 7)); err != nil {
		t.Error(err)
	}
	if c.append(make([]byte, 4)) == nil {
		t.Error("11 bytes into 10")
	}
	if err := errors.Join(c.append(make([]byte, 3)), c.flush()); err != nil {
		t.Error(err)
	}
	other := column{file: f, start: 0, room: 9}
	if other.copyFrom(&c) == nil {
		t.Error("10 bytes copied into 9")
	}
}
