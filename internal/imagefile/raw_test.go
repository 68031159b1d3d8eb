package imagefile

import (
	"path/filepath"
	"testing"
)

// Every file of testdata/raw, and its gray version, as Pillow reads them.
func TestRawAgainstPillow(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/raw/*/*")
	if err != nil || len(paths) == 0 {
		t.Fatal("no testdata/raw:", err)
	}
	againstPillow(t, paths)
}
