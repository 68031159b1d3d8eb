package usage

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// The least limit of a control group and of those around it counts.
func TestGroupLimit(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "jobs", "mine"), 0o755))
	for file, text := range map[string]string{"jobs/mine/memory.max": "max\n", "jobs/memory.max": "4096\n", "memory.max": "8192\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o644))
	}
	for group, want := range map[string]int64{"/jobs/mine": 4096, "/": 8192, "/elsewhere": 8192} {
		if got := groupLimit(root, group, "memory.max"); got != want {
			t.Errorf("%s: %d, want %d", group, got, want)
		}
	}
	if got := groupLimit(root, "/jobs", "other"); got != math.MaxInt64 {
		t.Errorf("without limits: %d", got)
	}
	if Memory() <= 0 {
		t.Errorf("%d bytes of memory", Memory())
	}
}
