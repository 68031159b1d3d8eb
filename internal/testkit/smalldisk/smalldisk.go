// Package smalldisk mounts small file systems, for tests of disks that fill up.
package smalldisk

import "testing"

// New returns a new folder at which a file system of that size, such as "256k", is mounted
// until the test ends. If that is not allowed, or not possible, the test is skipped.
func New(t testing.TB, size string) string {
	t.Helper()
	dir := t.TempDir()
	unmount, err := Mount(dir, size)
	if err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unmount(); err != nil {
			t.Error(err)
		}
	})
	return dir
}
