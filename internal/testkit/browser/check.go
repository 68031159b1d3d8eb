package browser

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// shotsVar names an environment variable: a folder where CheckPage leaves its pictures, to be
// looked at.
const shotsVar = "PENSTOCK_SHOTS"

// CheckPage opens a page on every one of Screens, and fails the test where it asks for
// anything, where the console is not empty, where it is wider than the screen, where its text
// is hard to tell from its paper, where fewer than plots of its drawings can be seen, or where one
// has no description. Without
// Chromium, or in short tests, it skips the test.
func CheckPage(t *testing.T, path string, plots int) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the page is not opened in a browser")
	}
	b, err := Start(t.Context())
	if errors.Is(err, ErrMissing) {
		t.Skipf("the page is not looked at: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, s := range Screens {
		t.Run(s.Name, func(t *testing.T) {
			p, err := b.Show("file://"+path, s)
			if err != nil {
				t.Fatal(err)
			}
			p.check(t, s, plots)
			if dir := os.Getenv(shotsVar); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)+"-"+s.Name+".png"), p.Picture, 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// look measures a page: its width, its drawings that have a size, and how light its paper and its
// text are.
const look = `(() => {
	const light = c => { const n = c.match(/[\d.]+/g).map(Number); return (0.2126*n[0] + 0.7152*n[1] + 0.0722*n[2]) / 255 };
	const style = getComputedStyle(document.body);
	const boxes = [...document.querySelectorAll("svg, canvas, img")].map(e => [e, e.getBoundingClientRect()]);
	const seen = boxes.filter(([e, box]) => e.tagName == "IMG" ? e.naturalWidth > 0 && box.width > 0 : box.width > 20 && box.height > 20);
	return {width: document.documentElement.scrollWidth, screen: innerWidth, plots: seen.length,
		wide: boxes.filter(([e, box]) => box.right > innerWidth + 1 && !e.closest(".scroll")).length,
		unnamed: document.querySelectorAll("svg[role=img]:not([aria-label]), img:not([alt])").length,
		paper: light(style.backgroundColor), ink: light(style.color)};
})()`

func (p *Page) check(t *testing.T, s Screen, plots int) {
	t.Helper()
	var got struct {
		Width, Screen, Plots, Wide, Unnamed int
		Paper, Ink                          float64
	}
	if err := p.Eval(look, &got); err != nil {
		t.Fatal(err)
	}
	for _, text := range p.Console {
		t.Errorf("console: %s", text)
	}
	for _, url := range p.Requests {
		t.Errorf("it asks for %s", url)
	}
	if got.Screen != s.Width || got.Width > s.Width || got.Wide > 0 {
		t.Errorf("the page is %d pixels wide on a screen of %d (%d); %d drawings leave it", got.Width, got.Screen, s.Width, got.Wide)
	}
	if got.Plots < plots || got.Unnamed > 0 {
		t.Errorf("%d drawings, want %d; %d without a description", got.Plots, plots, got.Unnamed)
	}
	if dark := got.Paper < .5; dark != s.Dark || max(got.Paper, got.Ink)-min(got.Paper, got.Ink) < .5 {
		t.Errorf("paper %.2f, ink %.2f", got.Paper, got.Ink)
	}
}
