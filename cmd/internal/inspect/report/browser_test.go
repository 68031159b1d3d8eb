package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/browser"
)

func TestReportInABrowser(t *testing.T) {
	html := page(t, compile(t, editedZoo(t), Options{Against: "1"}))
	for _, want := range []string{"a &lt;test&gt;", "<td class=\"n\">-1</td>"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	path := filepath.Join(t.TempDir(), "inspect.html")
	if err := os.WriteFile(path, []byte(html), 0o644); err != nil {
		t.Fatal(err)
	}
	browser.CheckPage(t, path, 1+strings.Count(html, "<img "))
}
