package browser

import (
	"bytes"
	"errors"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The check must see what it is to see: a page that asks for a file, complains and is too wide.
func TestBadPageIsSeenThrough(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no browser is started")
	}
	b, err := Start(t.Context())
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<body style="width:2000px"><img src="/none.png"><svg width="50" height="50"></svg><script>console.error("oh")</script>`))
	}))
	defer server.Close()
	p, err := b.Show(server.URL+"/", Screens[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(p.Requests, " "), "/none.png") || !strings.Contains(strings.Join(p.Console, " "), "oh") {
		t.Errorf("requests %q, console %q", p.Requests, p.Console)
	}
	var width int
	if err := p.Eval("document.documentElement.scrollWidth", &width); err != nil || width < 2000 {
		t.Errorf("%d, %v", width, err)
	}
	if err := p.Eval("nothing.at.all", &width); err == nil {
		t.Error("no error of a wrong script")
	}
	if img, err := png.Decode(bytes.NewReader(p.Picture)); err != nil || img.Bounds().Dx() < 360 {
		t.Errorf("picture: %v", err)
	}
	if _, err := b.Show("file:///no/such/page.html", Screens[0]); err == nil {
		t.Error("a page that is not there")
	}
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Start(t.Context()); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
}

// A Chromium that ends as it starts counts as missing, and the error has its output.
func TestCannotStart(t *testing.T) {
	bin, tmp := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho no sandbox to be had >&2\n"
	if err := os.WriteFile(filepath.Join(bin, names[0]), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv("TMPDIR", tmp)
	if _, err := Start(t.Context()); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "no sandbox to be had") {
		t.Error(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
