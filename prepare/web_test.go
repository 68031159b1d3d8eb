package prepare

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/webtest"
)

// Every kind of source is read from a web server, where it is a file or a dataset, and from the Hub, with resets, slow
// bodies, 429 and 503 on the way: the dataset is the one that is made locally.
func TestSourcesFromTheWeb(t *testing.T) {
	dir := foreign(t)
	c := config(t, filepath.Join(dir, "npz.npz"))
	c.Images.Resize, c.Images.Crop, c.Dest = nil, nil, filepath.Join(dir, "ds")
	mustRun(t, c)
	var faults atomic.Int64
	files := httptest.NewServer(webtest.Faulty(webtest.Files(os.DirFS(dir)), &faults))
	defer files.Close()
	hub := httptest.NewServer(webtest.Faulty(&webtest.Hub{
		Dataset: "lab/ds", Branch: "main", Commit: strings.Repeat("12345678", 5), Files: os.DirFS(dir), Token: "hf_thesecretofthistest", CDN: files.URL, Page: 3,
	}, &faults))
	defer hub.Close()
	t.Setenv("HF_ENDPOINT", hub.URL)
	t.Setenv("HF_TOKEN", "hf_thesecretofthistest")
	table := append(sourceTable[:len(sourceTable):len(sourceTable)], struct{ kind, name, fields string }{"flat", "ds", ""})
	var waits sync.WaitGroup
	var pairs [][2]string // of what was made from a server, and from the files
	room := make(chan struct{}, 8)
	for _, row := range table {
		want := DefaultConfig()
		want.Source, want.Fields, want.Dest = filepath.Join(dir, row.name), row.fields, filepath.Join(t.TempDir(), "ds")
		mustRun(t, want)
		for _, base := range []string{files.URL + "/", "hf://datasets/lab/ds/"} {
			if base != "hf://datasets/lab/ds/" && filepath.Ext(row.name) == "" && row.kind != "flat" {
				continue // a folder, which a web server does not list
			}
			c := want
			c.Source, c.Dest = base+row.name, filepath.Join(t.TempDir(), "ds")
			pairs = append(pairs, [2]string{c.Dest, want.Dest})
			waits.Go(func() { // for what a server says to wait: nothing computes
				room <- struct{}{}
				defer func() { <-room }()
				if s, err := Run(t.Context(), c, &rawtest.Silent{}); err != nil {
					t.Errorf("%s: %v", c.Source, err)
				} else if s.Source.Path != c.Source || s.Source.Kind != row.kind {
					t.Errorf("made from %s, which is %s", s.Source.Path, s.Source.Kind)
				}
			})
		}
	}
	waits.Wait()
	for _, p := range pairs {
		checkSame(t, p[0], p[1])
	}
	if faults.Load() < 20 {
		t.Errorf("%d faults", faults.Load())
	}
}

// Sources that a web server cannot be, and destinations.
func TestWebRefusals(t *testing.T) {
	files := httptest.NewServer(webtest.Files(os.DirFS(rawtest.Folder(t, 4))))
	defer files.Close()
	for source, says := range map[string]string{"/cat": "name a file, or a folder that has a manifest.json", "/none.tar": "no such file or folder: a web server does not list"} {
		c := config(t, files.URL+source)
		if _, err := Run(t.Context(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), files.URL+source) {
			t.Errorf("%s: %v", source, err)
		}
	}
	for _, dest := range []string{"https://example.org/ds", "http://example.org/ds", "hf://datasets/lab/ds@main/x"} {
		c := config(t, "photos")
		c.Dest = dest
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%s: %v", dest, err)
		}
	}
}
