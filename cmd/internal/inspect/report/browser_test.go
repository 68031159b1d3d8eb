package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/browser"
	"github.com/penstock/penstock/internal/testkit/require"
)

func TestReportInABrowser(t *testing.T) {
	html := page(t, compile(t, zoo(t), Options{}))
	path := filepath.Join(t.TempDir(), "inspect.html")
	require.NoError(t, os.WriteFile(path, []byte(html), 0o644))
	browser.CheckPage(t, path, 1+strings.Count(html, "<img "))
}
