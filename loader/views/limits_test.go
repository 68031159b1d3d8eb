package views

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// TestLimitsOfTheFormat compares the limits with those of docs/format.md, which the Python package is compared with, too.
func TestLimitsOfTheFormat(t *testing.T) {
	text, err := os.ReadFile("../../docs/format.md")
	require.NoError(t, err)
	for row, limit := range map[string]int{"bytes of a file": maxFile, "views nested": maxDepth, "files, each": maxFiles, "datasets, each": maxDatasets} {
		_, rest, _ := strings.Cut(string(text), "\n| "+row)
		if rest, _, _ = strings.Cut(rest, "\n"); !strings.HasSuffix(rest, fmt.Sprintf("| %d |", limit)) {
			t.Errorf("%s: docs/format.md has%s, and %d is the limit", row, rest, limit)
		}
	}
}
