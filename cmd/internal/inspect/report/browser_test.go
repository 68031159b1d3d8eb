package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/browser"
)

func TestReportInABrowser(t *testing.T) {
	html := page(t, compile(t, zoo(t), Options{}))
	path := filepath.Join(t.TempDir(), "inspect.html")
	if err := os.WriteFile(path, []byte(html), 0o644); err != nil {
		t.Fatal(err)
	}
	browser.CheckPage(t, path, 1+strings.Count(html, "<img "))
}
