package demo

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// A demo overwrites an earlier demo, and no file that no demo made: neither in a folder of somebody's own, nor classes
// that were added to its images, which the network does not know.
func TestOnlyADemoIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ folder, file, names string }{
		{"own", "shapes.h5", "shapes.h5"}, {"classes", "raw/cat/0.png", "raw"}, {"again", "raw/cat/0.png", filepath.Join("raw", "cat")},
	} {
		folder := filepath.Join(dir, c.folder)
		if c.folder == "again" {
			for range 2 {
				require.NoError(t, draw(folder))
			}
		}
		path := filepath.Join(folder, c.file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("the only copy"), 0o600))
		want := foldertest.Files(t, folder)
		err := draw(folder)
		if err == nil || !strings.Contains(err.Error(), folder+": "+c.names+" is not of a demo") || !strings.HasSuffix(err.Error(), ": penstock demo "+folder+"-2") {
			t.Errorf("%s: %v", c.folder, err)
		}
		if got := foldertest.Files(t, folder); !maps.Equal(got, want) {
			t.Errorf("%s: files were changed", c.folder)
		}
	}
}
