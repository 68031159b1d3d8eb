package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// walkGo calls f with the Go files of the product.
func walkGo(t *testing.T, f func(path string, src []byte)) {
	t.Helper()
	const root = "../../.."
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "python") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		f(filepath.ToSlash(rel), src)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
