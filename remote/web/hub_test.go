package web

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/webtest"
	"github.com/penstock/penstock/remote"
)

const (
	commit  = "0123456789abcdef0123456789abcdef01234567"
	hfToken = "hf_thesecrettokenoftests"
)

var hubFiles = fstest.MapFS{
	"README.md": {Data: []byte("# Data")}, "data/a b.bin": {Data: content(100_000)}, "data/train-1.bin": {Data: content(2000)},
	"data/more/x": {Data: []byte("x")}, "zebra.txt": {}, "apples/y": {Data: []byte("y")},
}

// openHub opens a dataset of a hub, and gives it the environment of a user.
func openHub(t *testing.T, endpoint, text string, environment ...string) *bucket {
	t.Helper()
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH"} {
		t.Setenv(name, "")
	}
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_ENDPOINT", endpoint)
	for i := 0; i < len(environment); i += 2 {
		t.Setenv(environment[i], environment[i+1])
	}
	b, _ := open(t, text)
	return b
}

// standIn serves files as the Hub, with its CDN, which gets no token.
func standIn(t *testing.T) (*webtest.Hub, string) {
	cdn := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("another host got %v", r.Header)
		}
		webtest.Files(hubFiles).ServeHTTP(w, r)
	}))
	h := &webtest.Hub{Dataset: "lab/birds", Branch: "refs/convert/parquet", Commit: commit, Files: hubFiles, Token: hfToken, CDN: cdn, Page: 2}
	return h, start(t, h)
}

func TestHub(t *testing.T) {
	h, url := standIn(t)
	b := openHub(t, url, "hf://datasets/lab/birds@refs/convert/parquet/data", "HF_TOKEN", hfToken)
	if b.String() != "hf://datasets/lab/birds@refs/convert/parquet" {
		t.Error(b)
	}
	c := requests.NewClient(b, quick)
	for name, f := range hubFiles {
		readAll(t, c, name, f.Data)
	}
	if n := h.Resolved.Load(); n > 20 { // 13 reads of the large file
		t.Errorf("%d requests for files: where they are was not remembered", n)
	}
	o, err := c.Stat(t.Context(), "README.md")
	if err != nil || !strings.Contains(o.ETag, commit) {
		t.Errorf("%+v, %v", o, err)
	}
	for _, c2 := range []struct{ prefix, delimiter, want string }{
		{"", "/", "README.md apples/ data/ zebra.txt"}, {"data/", "/", "data/a b.bin data/more/ data/train-1.bin"},
		{"data/", "", "data/a b.bin data/more/x data/train-1.bin"}, {"none/", "/", ""}, {"data/tr", "/", "data/train-1.bin"},
		{"", "/", "README.md apples/ data/ zebra.txt"},
	} {
		var got []string
		for o, err := range c.List(t.Context(), c2.prefix, c2.delimiter) {
			require.NoError(t, err)
			if f := hubFiles[o.Key]; !o.Folder && int(o.Size) != len(f.Data) {
				t.Errorf("%+v", o)
			}
			got = append(got, o.Key)
		}
		if strings.Join(got, " ") != c2.want {
			t.Errorf("%q by %q: %q, want %q", c2.prefix, c2.delimiter, got, c2.want)
		}
	}
	if _, err := c.Stat(t.Context(), "none"); !errors.Is(err, remote.ErrNotFound) || !strings.Contains(err.Error(), "no such file in this revision") {
		t.Errorf("a file that is not there: %v", err)
	}
	h.Branch = "moved on" // the commit stays
	readAll(t, c, "README.md", hubFiles["README.md"].Data)
}

// Messages say where a token is from and which access it gives, never the token.
func TestTokens(t *testing.T) {
	_, url := standIn(t)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(hfToken+"\n"), 0o600))
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "token"), []byte(hfToken), 0o600))
	for _, c := range []struct {
		name, value string
		kind        error
		says        string
	}{
		{"HF_TOKEN", hfToken, nil, ""}, {"HUGGING_FACE_HUB_TOKEN", hfToken, nil, ""}, {"HF_TOKEN_PATH", file, nil, ""}, {"HF_HOME", home, nil, ""},
		{"HF_TOKEN", "hf_wrongwrongwrongwrong", remote.ErrNoBucket, "the token of HF_TOKEN was sent (endpoint 127.0.0.1:"},
		{"X", "", remote.ErrNoBucket, "no token was sent: set HF_TOKEN, or run hf auth login"},
	} {
		b := openHub(t, url, "hf://datasets/lab/birds@"+commit, c.name, c.value)
		_, err := b.Stat(t.Context(), "README.md")
		if !errors.Is(err, c.kind) || c.kind != nil && !strings.Contains(err.Error(), c.says) || err != nil && strings.Contains(err.Error(), "wrongwrong") {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
	for name, value := range map[string]string{"HF_TOKEN": "two\nlines", "HF_ENDPOINT": "huggingface.co"} {
		t.Setenv("HF_ENDPOINT", url)
		t.Setenv(name, value)
		u, err := remote.ParseURL("hf://datasets/lab/birds@main")
		require.NoError(t, err)
		if _, err := Open(u); !errors.Is(err, remote.ErrInvalid) || strings.Contains(err.Error(), "two") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if u, err := remote.ParseURL("hf://datasets/lab/birds@main?endpoint=https://evil"); err != nil {
		t.Error(err)
	} else if _, err := Open(u); !errors.Is(err, remote.ErrInvalid) {
		t.Errorf("an endpoint of the URL, which would get the token: %v", err)
	}
}

func TestHubRefusals(t *testing.T) {
	for code, c := range map[string]struct {
		status int
		kind   error
		says   string
	}{
		"EntryNotFound": {404, remote.ErrNotFound, "no such file"}, "RevisionNotFound": {404, remote.ErrNotFound, `no revision "v9"`},
		"RepoNotFound": {401, remote.ErrNoBucket, "no token was sent"}, "GatedRepo": {403, remote.ErrPermission, "accept its terms at http"},
		"": {403, remote.ErrPermission, "no token was sent"}, "Words": {404, remote.ErrNotFound, "404"}, "Busy": {429, nil, "a pause of 1m5s"},
	} {
		b := openHub(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Error-Code", code)
			w.Header().Set("RateLimit", `"resolvers";r=0;t=65`)
			w.WriteHeader(c.status)
		})), "hf://datasets/lab/birds@v9")
		_, err := b.Stat(t.Context(), "x")
		var known *remote.Error
		if !errors.As(err, &known) || known.Kind != c.kind || !strings.Contains(err.Error(), c.says) || known.After != 65*time.Second {
			t.Errorf("%d %s: %v", c.status, code, err)
		}
	}
}

// A hub that answers other than it was asked is an error, in bounded memory, and gets no further requests.
func TestHostileHub(t *testing.T) {
	var count atomic.Int64
	elsewhere := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("another host was asked: %v", r.Header) }))
	entries := func(w http.ResponseWriter, list string) { fmt.Fprint(w, "[", list, "]") }
	for name, attack := range map[string]func(w http.ResponseWriter, r *http.Request){
		"endless listing": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", fmt.Sprintf(`</api/%d>; rel="next"`, count.Add(1)))
			entries(w, `{"type": "file", "path": "d/x", "size": 1}`)
		},
		"endless listing of nothing": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", fmt.Sprintf(`</api/%d>; rel="next"`, count.Add(1)))
			entries(w, "")
		},
		"listing that repeats": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, r.URL))
			entries(w, "")
		},
		"listing that goes elsewhere": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", fmt.Sprintf(`<%s/api>; rel="next"`, elsewhere))
			entries(w, "")
		},
		"no JSON":    func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") },
		"wrong JSON": func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"path": 1}`) },
		"endless JSON": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `["`)
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		},
		"names that lead out": func(w http.ResponseWriter, r *http.Request) {
			entries(w, `{"type":"file","path":"../x"},{"type":"file","path":"d/../../x"},{"type":"file","path":"/d/x"},{"type":"file","path":"d//x"},{"type":"file","path":"e/x"},{"type":"link","path":"d/x"},{"type":"file","path":"d/y","size":-1},{"type":"file","path":""}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := openHub(t, start(t, http.HandlerFunc(attack)), "hf://datasets/lab/birds@"+commit, "HF_TOKEN", hfToken)
			n := 0
			var err error
			for _, err = range requests.NewClient(b, quick).List(t.Context(), "d/", "/") {
				if err == nil {
					n++
				}
			}
			if n > 0 || err == nil && name != "names that lead out" {
				t.Errorf("%d names, %v", n, err)
			}
		})
	}
	b := openHub(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"sha": "../../../etc"}`) })), "hf://datasets/lab/birds")
	if _, err := b.Stat(t.Context(), "x"); !errors.Is(err, remote.ErrInvalid) {
		t.Errorf("a commit that is none: %v", err)
	}
}

// Resets, slow bodies, 429 and 503 of the Hub and of its CDN change no byte and no listing.
func TestFaultyHub(t *testing.T) {
	var faults atomic.Int64
	cdn := start(t, webtest.Faulty(webtest.Files(hubFiles), &faults))
	h := &webtest.Hub{Dataset: "lab/birds", Branch: "main", Commit: commit, Files: hubFiles, Token: hfToken, CDN: cdn, Page: 2}
	b := openHub(t, start(t, webtest.Faulty(h, &faults)), "hf://datasets/lab/birds", "HF_TOKEN", hfToken)
	c := requests.NewClient(b, remote.Policy{Backoff: time.Millisecond})
	var keys []string
	for o, err := range c.List(t.Context(), "", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
		readAll(t, c, o.Key, hubFiles[o.Key].Data)
	}
	if len(keys) != len(hubFiles) || !slices.IsSorted(keys) || faults.Load() < 20 {
		t.Errorf("%q, %d faults", keys, faults.Load())
	}
}
