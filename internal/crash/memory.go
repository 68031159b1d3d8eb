package crash

import (
	"os"
	"testing"
)

// MemoryDir makes a folder in memory, where there is one: waiting for a disk tells nothing about
// crashes. It goes when the test ends.
func MemoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "penstock")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
