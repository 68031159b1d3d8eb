package browser

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// A page that asks for a file, complains and is too wide is found out.
func TestBadPage(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no browser is started")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a & b.html")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	text := `<body style="width:2000px"><img src="` + server.URL +
		`/none.png"><svg role="img" width="50" height="50"></svg><script>console.error("oh")</script>`
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	found, err := look(t.Context(), dir, path, true)
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	problems := strings.Join(found.problems(true, 3), "\n")
	for _, want := range []string{"console: \"oh\"", "asks for http://", "/none.png", "pixels wide on a screen of 360",
		"pixels wide on a screen of 1280", "1 drawings, want 3; 2 without", "paper "} {
		if !strings.Contains(problems, want) {
			t.Errorf("no %q in\n%s", want, problems)
		}
	}
	if _, err := look(t.Context(), t.TempDir(), filepath.Join(dir, "none.html"), false); err == nil {
		t.Error("a page that is not there")
	}
}
