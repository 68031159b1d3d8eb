package flat

import (
	"hash/crc32"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
)

// numpy runs a script on a dataset, by a Python that has NumPy, and returns what it prints.
func numpy(t *testing.T, dest, script string) string {
	t.Helper()
	return string(pythontest.Run(t, "import numpy", "-c", script, dest))
}

func ieee(b []byte) string { return strconv.FormatUint(uint64(crc32.ChecksumIEEE(b)), 10) }

// stageDir returns the folder that dest is built in.
func stageDir(dest string) string {
	return filepath.Join(filepath.Dir(dest), "."+filepath.Base(dest)+".building")
}
