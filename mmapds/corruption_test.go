package mmapds_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/penstock/penstock/internal/testkit/corruption"
	"github.com/penstock/penstock/internal/testkit/require"
)

func TestEveryCorruptionOfAFlatDataset(t *testing.T) {
	path := buildRagged(t, 700)
	trials := corruption.NewTrials(t, path)
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	for _, e := range entries {
		file := filepath.Join(path, e.Name())
		good, err := os.ReadFile(file)
		require.NoError(t, err)
		try := func(done string, bad []byte) {
			replaceFile(t, file, bad)
			trials.Judge(t, path, e.Name()+": "+done)
		}
		for done, bad := range corruption.Done(good, max(11, len(good)/50), 3) {
			try(done, bad)
		}
		try("a byte more", append(bytes.Clone(good), 0))
		replaceFile(t, file, good)
	}
	trials.End(t)
}

// replaceFile gives a file other bytes. It is a new file, as old ones may be mapped.
func replaceFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	require.NoError(t, os.WriteFile(path, data, 0o666))
}
