// Package browser opens pages in a headless Chromium, for tests of pages.
package browser

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// ErrMissing says that Chromium is not installed, or does not start here.
var ErrMissing = errors.New("no Chromium that runs here (Debian: apt-get install chromium)")

// names are the names of Chromium's program.
var names = []string{"chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "google-chrome-stable"}

// CheckPage opens the page at path on a phone and on a desk, in light and in dark. It fails the test if the page asks
// for anything, writes to the console, is wider than the screen, has text that is hard to distinguish from its paper,
// shows fewer than drawings pictures, or has one without a description. Without Chromium, or in short
// tests, it skips the test.
func CheckPage(t *testing.T, path string, drawings int) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the page is not opened in a browser")
	}
	for _, dark := range []bool{false, true} {
		found, err := look(t.Context(), t.TempDir(), path, dark)
		if errors.Is(err, ErrMissing) {
			t.Skipf("the page is not looked at: %v", err)
		}
		require.NoError(t, err)
		for _, problem := range found.problems(dark, drawings) {
			t.Errorf("dark %v: %s", dark, problem)
		}
	}
}

// findings are a browser's messages about a page.
type findings struct {
	console []string
	screens []screen
}

// screen is a page on a screen of Screen pixels.
type screen struct {
	Screen, Width, Drawings, Wide, Unnamed int
	Paper, Ink                             float64
	Requests                               []string
}

func (f *findings) problems(dark bool, drawings int) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, line := range f.console {
		say("console: %s", line)
	}
	for _, s := range f.screens {
		for _, request := range s.Requests {
			say("it asks for %s", request)
		}
		if s.Width > s.Screen || s.Wide > 0 {
			say("the page is %d pixels wide on a screen of %d; %d drawings leave it", s.Width, s.Screen, s.Wide)
		}
		if s.Drawings < drawings || s.Unnamed > 0 {
			say("%d drawings, want %d; %d without a description", s.Drawings, drawings, s.Unnamed)
		}
		if (s.Paper < .5) != dark || max(s.Paper, s.Ink)-min(s.Paper, s.Ink) < .5 {
			say("paper %.2f, ink %.2f", s.Paper, s.Ink)
		}
	}
	return list
}

// frames shows a page on all screens at once, and measures it on each: the page itself may forbid scripts.
//
//go:embed frames.html
var frames string

var (
	console = regexp.MustCompile(`(?m):CONSOLE[:(]\S* (.*)$`)
	answer  = regexp.MustCompile(`(?s)<pre id="found">(.+?)</pre>`)
)

// look opens the page at path with a Chromium that keeps its files in dir. It runs without its sandbox, which root and
// many containers cannot have: give it pages of your own only.
func look(ctx context.Context, dir, path string, dark bool) (*findings, error) {
	program := ""
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		return nil, ErrMissing
	}
	wrapper, scheme := filepath.Join(dir, "frames.html"), 1
	if dark {
		scheme = 0
	}
	address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	if err := os.WriteFile(wrapper, []byte(strings.ReplaceAll(frames, "PAGE", html.EscapeString(address))),
		0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--hide-scrollbars",
		"--allow-file-access-from-files", "--enable-logging=stderr", fmt.Sprintf("--blink-settings=preferredColorScheme=%d",
			scheme),
		"--user-data-dir="+filepath.Join(dir, "profile"), "--dump-dom", "file://"+filepath.ToSlash(wrapper))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil || out.Len() == 0 {
		return nil, fmt.Errorf("%w: %v: %s", ErrMissing, err, said.Bytes())
	}
	f := &findings{}
	for _, m := range console.FindAllStringSubmatch(said.String(), -1) {
		f.console = append(f.console, m[1])
	}
	found := answer.FindSubmatch(out.Bytes())
	if found == nil {
		return nil, fmt.Errorf("%s does not load: %s", path, strings.Join(f.console, "; "))
	}
	return f, json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), &f.screens)
}
