// Package commands builds the commands of this module for tests that start them and cannot import them.
package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Build puts the named commands of cmd/ into a new folder, which it returns. They have no SDKs of the clouds. Tests of
// several packages need the same programs, which go run, unlike go build, takes from its cache. root leads from the
// folder of the test to that of the module.
func Build(t testing.TB, root string, names ...string) string {
	t.Helper()
	dir, tags := t.TempDir(), "nocloud,"+os.Getenv("CODECS") // those of make test, which has built the packages then
	for _, name := range names {
		path := filepath.Join(dir, name)
		args := []string{"run", "-C", root, "-tags", tags, "-exec", "cp", "./cmd/" + name, path}
		if runtime.GOOS == "windows" { // which has no cp
			args = []string{"build", "-C", root, "-tags", tags, "-o", path + ".exe", "./cmd/" + name}
		}
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", name, err, out)
		}
	}
	return dir
}
