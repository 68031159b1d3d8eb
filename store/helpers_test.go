package store

import (
	"hash/crc32"
	"os/exec"
	"strconv"
	"testing"
)

// findPython returns an interpreter that has the module, or skips the test.
func findPython(t *testing.T, module string) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	t.Skipf("no python3 with %s: apt-get install python3-%s", module, module)
	return ""
}

func ieee(b []byte) string { return strconv.FormatUint(uint64(crc32.ChecksumIEEE(b)), 10) }
