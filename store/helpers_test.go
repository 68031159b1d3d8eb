package store

import (
	"hash/crc32"
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
