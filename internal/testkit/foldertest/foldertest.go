// Package foldertest reads folders, for tests that compare them, and swaps them, for tests of attacks.
package foldertest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Read returns the content of every file below path, by its path there; if path is a file, its
// content, by ".".
func Read(path string) (map[string]string, error) {
	all := make(map[string]string)
	return all, filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		name, err = filepath.Rel(path, name)
		all[name] = string(data)
		return err
	})
}

// Files is Read for a test, which ends if a file cannot be read.
func Files(t testing.TB, path string) map[string]string {
	t.Helper()
	all, err := Read(path)
	require.NoError(t, err)
	return all
}

// Write makes a folder of what Files returned of another one, whose files are read-only.
func Write(t testing.TB, path string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		name = filepath.Join(path, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
		require.NoError(t, os.WriteFile(name, []byte(data), 0o444))
	}
}
