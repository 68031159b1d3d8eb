package kinds

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// The files that braces stand for are a source, in that order, unless one is not there.
func TestBracesOfFiles(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"2", "1", "3"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "s-"+n+".csv"), []byte("x\n"+n+"\n"), 0o666))
	}
	files, err := source.Files(filepath.Join(dir, "s-{3,1}*.csv"))
	if err != nil || !slices.Equal(files, []string{filepath.Join(dir, "s-3.csv"), filepath.Join(dir, "s-1.csv")}) {
		t.Errorf("%q, %v", files, err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "s-{1..4}.csv"), source.Options{}); err == nil || !strings.Contains(err.Error(), "s-4.csv: no such file") {
		t.Errorf("error %v", err)
	}
	s, err := Open(t.Context(), filepath.Join(dir, "s-{1..3}.csv"), source.Options{})
	require.NoError(t, err)
	if n := s.Info().Count; n != 3 {
		t.Errorf("%d rows", n)
	}
}
