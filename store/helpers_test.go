package store

import (
	"bytes"
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

// numpy runs a script on a dataset, by a Python that has NumPy, and returns what it prints. What
// libraries say on stderr, of the processor for one, is told with errors only.
func numpy(t *testing.T, dest, script string) string {
	t.Helper()
	var diag bytes.Buffer
	cmd := exec.Command(findPython(t, "numpy"), "-c", script, dest)
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, diag.Bytes())
	}
	return string(out)
}

func ieee(b []byte) string { return strconv.FormatUint(uint64(crc32.ChecksumIEEE(b)), 10) }
