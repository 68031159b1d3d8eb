package crash

import (
	"os"
	"testing"

	"github.com/penstock/penstock/internal/sys/usage"
)

// roomBytes is the free space that a folder in memory must have: three times what the tests of all
// packages use there at a time. Containers often have 64 MiB in all.
const roomBytes = 48 << 20

// mainBytes is the free memory needed for all temporary folders of a package's tests.
const mainBytes = 2 << 30

// MemoryDir makes a folder in memory, where there is one with room: waiting for a disk says nothing
// about crashes. It goes when the test ends.
func MemoryDir(t testing.TB) string {
	t.Helper()
	dir, err := inMemory(roomBytes)
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Main runs the tests of a package that sync thousands of small files, with their temporary folders in memory where
// that has room: a disk takes milliseconds for each. It returns the exit code.
func Main(m *testing.M) int {
	dir, err := inMemory(mainBytes)
	if err != nil {
		return m.Run()
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("TMPDIR", dir); err != nil {
		panic(err)
	}
	return m.Run()
}

// inMemory makes a folder in memory, if that has so much room.
func inMemory(room int64) (string, error) {
	const memory = "/dev/shm"
	if free, known := usage.FreeSpace(memory); !known || free < room {
		return "", os.ErrNotExist
	}
	return os.MkdirTemp(memory, "penstock")
}
