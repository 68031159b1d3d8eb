package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
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

// quick is a policy that gives up soon.
var quick = remote.Policy{Attempts: 3, Backoff: time.Millisecond, Stall: 2 * time.Second, Total: 10 * time.Second}

func open(t *testing.T, text string) (*bucket, string) {
	t.Helper()
	t.Setenv("NETRC", filepath.Join(t.TempDir(), "none"))
	u, err := remote.ParseURL(text)
	require.NoError(t, err)
	b, err := Open(u)
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b.(*bucket), u.Key
}

// start serves a handler until the test ends.
func start(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// content returns bytes without two equal ranges.
func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13)
	}
	return b
}

func TestFilesOfAServer(t *testing.T) {
	big := content(300_000)
	files := fstest.MapFS{"a/big.bin": {Data: big}, "a/empty": {}, "ä b%.txt": {Data: []byte("name")}, "ds/manifest.json": {Data: []byte("{}")}}
	url := start(t, webtest.Files(files))
	b, _ := open(t, url+"/a/big.bin")
	c := requests.NewClient(b, quick)
	o, err := c.Stat(t.Context(), "a/big.bin")
	if err != nil || o.Size != int64(len(big)) || !strings.HasPrefix(o.ETag, `"`) {
		t.Fatalf("%+v, %v", o, err)
	}
	got := make([]byte, 70_000)
	if err := c.ReadAt(t.Context(), o, 130_001, got); err != nil || !bytes.Equal(got, big[130_001:200_001]) {
		t.Errorf("a range: %v", err)
	}
	r := c.NewReader(t.Context(), o, 7, -1)
	if all, err := io.ReadAll(r); err != nil || !bytes.Equal(all, big[7:]) {
		t.Errorf("all from byte 7 on: %d bytes, %v", len(all), err)
	}
	r.Close()
	for key, want := range map[string]string{"a/empty": "", "ä b%.txt": "name"} {
		o, err := c.Stat(t.Context(), key)
		all, _, allErr := c.ReadAll(t.Context(), key, 100)
		if err != nil || allErr != nil || o.Size != int64(len(want)) || string(all) != want {
			t.Errorf("%s: %+v, %q, %v, %v", key, o, all, err, allErr)
		}
	}
	if _, err := c.Stat(t.Context(), "a/none"); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
	for prefix, want := range map[string]int{"ds/": 1, "a/": 0, "": 0} {
		n := 0
		for _, err = range c.List(t.Context(), prefix, "/") {
			if err == nil {
				n++
			}
		}
		if n != want || (want == 0) != errors.Is(err, remote.ErrNotFound) {
			t.Errorf("%q lists %d files, %v", prefix, n, err)
		}
	}
	for what, err := range map[string]error{
		"write":  c.WriteAll(t.Context(), "x", []byte("x"), remote.WriteOptions{}),
		"copy":   c.Copy(t.Context(), "a/empty", "x"),
		"delete": c.Delete(t.Context(), "x"),
	} {
		if !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An object that is replaced while it is read is an error, whatever the server says of versions.
func TestReplacedFiles(t *testing.T) {
	for name, header := range map[string]func(h http.Header, version int){
		"ETag":      func(h http.Header, v int) { h.Set("ETag", fmt.Sprintf(`"%d"`, v)) },
		"weak ETag": func(h http.Header, v int) { h.Set("ETag", fmt.Sprintf(`W/"%d"`, v)) },
		"Last-Modified": func(h http.Header, v int) {
			h.Set("Last-Modified", time.Unix(int64(v), 0).UTC().Format(http.TimeFormat))
		},
		"size": func(h http.Header, v int) {},
	} {
		var version atomic.Int64
		b, _ := open(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v := int(version.Load())
			header(w.Header(), v)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content(1000+v)))
		})))
		c := requests.NewClient(b, quick)
		o, err := c.Stat(t.Context(), "x")
		if err != nil || o.ETag == "" {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
		if err := c.ReadAt(t.Context(), o, 10, make([]byte, 100)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		version.Add(1)
		if err := c.ReadAt(t.Context(), o, 10, make([]byte, 100)); !errors.Is(err, remote.ErrChanged) {
			t.Errorf("%s: the file was replaced: %v", name, err)
		}
	}
}

// A server that sends whole files serves what is read from its begin, and of the rest says so.
func TestServerWithoutRanges(t *testing.T) {
	data := content(5000)
	b, _ := open(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data)
	})))
	c := requests.NewClient(b, quick)
	o, err := c.Stat(t.Context(), "x")
	got := make([]byte, 100)
	if err == nil {
		err = c.ReadAt(t.Context(), o, 0, got)
	}
	if err != nil || o.Size != 5000 || !bytes.Equal(got, data[:100]) {
		t.Errorf("%+v, %v", o, err)
	}
	if err := c.ReadAt(t.Context(), o, 100, got); !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), "whole files only") {
		t.Errorf("a range: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for status, kind := range map[int]error{
		301: remote.ErrInvalid, 400: remote.ErrInvalid, 401: remote.ErrPermission, 403: remote.ErrPermission, 404: remote.ErrNotFound, 410: remote.ErrNotFound,
		412: remote.ErrChanged, 416: remote.ErrInvalid, 418: remote.ErrInvalid, 501: remote.ErrInvalid,
		408: nil, 425: nil, 429: nil, 500: nil, 502: nil, 503: nil, 504: nil,
	} {
		b, _ := open(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			fmt.Fprint(w, "\x1b[31mwords of the server")
		})))
		_, err := b.Stat(t.Context(), "x")
		var known *remote.Error
		if !errors.As(err, &known) || known.Kind != kind || known.After != 7*time.Second || !strings.Contains(err.Error(), fmt.Sprint(status)) || strings.Contains(err.Error(), "words") {
			t.Errorf("%d: %v", status, err)
		}
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	plain := start(t, http.NotFoundHandler())
	for url, says := range map[string]string{secure.URL: "SSL_CERT_FILE", strings.Replace(plain, "http:", "https:", 1): "write http://"} {
		b, _ := open(t, url+"/x?token=hunter2")
		if _, err := b.Stat(t.Context(), "x"); !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "120", 2 * time.Minute}, {"Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT", time.Minute}, {"Retry-After", "Fri, 02 Jan 2026 03:00:00 GMT", 0},
		{"Retry-After", "-5", 0}, {"Retry-After", "soon", 0}, {"Retry-After", "4000000000", 24 * time.Hour}, {"Retry-After", "99999999999999999999", 0},
		{"RateLimit", `"api";r=0;t=55`, 55 * time.Second}, {"RateLimit", `"api";r=12;t=55`, 0}, {"RateLimit", `t=x;r=0`, 0}, {"X", "1", 0},
	} {
		if got := retryAfter(http.Header{http.CanonicalHeaderKey(c.name): {c.value}}, now); got != c.want {
			t.Errorf("%s: %s is %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

// Credentials and the URL itself, which may be signed, do not go to where a server leads, nor does anything go from
// HTTPS to HTTP.
func TestRedirects(t *testing.T) {
	var asked atomic.Int64
	other := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if all := fmt.Sprint(r.Header, r.URL); strings.Contains(all, "Authorization") || strings.Contains(all, "hunter2") || r.Header.Get("Range") == "" {
			t.Errorf("another host was asked: %s", all)
		}
		webtest.Files(fstest.MapFS{"else": {Data: content(1000)}}).ServeHTTP(w, r)
	}))
	var origin atomic.Int64
	url := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin.Add(1)
		if user, password, _ := r.BasicAuth(); user != "me" || password != "hunter2" || r.URL.RawQuery != "sig=hunter2" {
			t.Errorf("%v %v", r.Header, r.URL)
		}
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/x?sig=hunter2", http.StatusMovedPermanently)
		case "/x":
			webtest.Files(fstest.MapFS{"x": {Data: content(1000)}}).ServeHTTP(w, r)
		case "/loop":
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
		case "/folder":
			http.Redirect(w, r, "/x/?sig=hunter2", http.StatusFound)
		case "/x/":
			fmt.Fprint(w, "<html>")
		default:
			http.Redirect(w, r, other+"/else", http.StatusTemporaryRedirect)
		}
	}))
	b, _ := open(t, strings.Replace(url, "http://", "http://me:hunter2@", 1)+"/y?sig=hunter2")
	c := requests.NewClient(b, quick)
	for _, key := range []string{"same", "away", "away", "away"} {
		got := make([]byte, 100)
		if err := c.ReadAt(t.Context(), remote.Object{Key: key}, 50, got); err != nil || !bytes.Equal(got, content(1000)[50:150]) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if origin.Load() != 3 || asked.Load() != 3 {
		t.Errorf("%d requests, %d of them elsewhere: where an object is was not remembered", origin.Load(), asked.Load())
	}
	for key, kind := range map[string]error{"loop": remote.ErrInvalid, "folder": remote.ErrNotFound} {
		if _, err := c.Stat(t.Context(), key); !errors.Is(err, kind) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", key, err)
		}
	}
	secure := httptest.NewTLSServer(http.RedirectHandler(other+"/else", http.StatusFound))
	defer secure.Close()
	b, _ = open(t, secure.URL)
	b.site.client.Transport = secure.Client().Transport
	if _, err := b.Stat(t.Context(), "x"); !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), "leads from https://") || asked.Load() != 3 {
		t.Errorf("from HTTPS to HTTP: %v", err)
	}
}

// If the target of a redirect refuses, the redirect is requested again: such URLs are signed for a time.
func TestExpiredLocation(t *testing.T) {
	var signature atomic.Int64
	cdn := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sig") != fmt.Sprint(signature.Load()) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		webtest.Files(fstest.MapFS{"x": {Data: content(100)}}).ServeHTTP(w, r)
	}))
	b, _ := open(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprintf("%s/x?sig=%d", cdn, signature.Load()), http.StatusFound)
	})))
	for range 4 {
		if o, err := b.Stat(t.Context(), "x"); err != nil || o.Size != 100 {
			t.Errorf("%+v, %v", o, err)
		}
		signature.Add(1)
	}
}

func TestLogins(t *testing.T) {
	const netrc = "# machine host login no password no\nmacdef init\nmachine host login macro\n\nmachine other\n login you password theirs\nmachine HOST login me\n\tpassword hunter2 account x\ndefault login anybody password x"
	for host, want := range map[string]string{"host": "me:hunter2", "other": "you:theirs", "third": "anybody:x"} {
		if got := loginFor(netrc, host); got.String() != want {
			t.Errorf("%s: %v, want %s", host, got, want)
		}
	}
	for _, text := range []string{"", "machine", "machine host", "machine host login", "login x password y", "machine host password"} {
		_ = loginFor(text, "host")
	}
	if got := loginFor("machine other login x password y", "host"); got != nil {
		t.Errorf("the login of another host: %v", got)
	}

	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		webtest.Files(fstest.MapFS{"x": {Data: content(100)}}).ServeHTTP(w, r)
	}))
	defer secure.Close()
	for password, says := range map[string]string{"hunter2": "", "wrong": "the login of ", "": "no credentials were sent; put the login for 127.0.0.1 into ~/.netrc"} {
		file := filepath.Join(t.TempDir(), "netrc")
		require.NoError(t, os.WriteFile(file, []byte("machine "+map[bool]string{true: "127.0.0.1", false: "x"}[password != ""]+" login me password "+password), 0o600))
		t.Setenv("NETRC", file)
		u, err := remote.ParseURL(secure.URL)
		require.NoError(t, err)
		b, err := Open(u)
		require.NoError(t, err)
		b.(*bucket).site.client.Transport = secure.Client().Transport
		_, err = b.Stat(t.Context(), "x")
		if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) || !errors.Is(err, remote.ErrPermission)) {
			t.Errorf("password %q: %v", password, err)
		}
	}
}

// A server that answers other than it was asked: whatever comes is an error or the right bytes, and takes no more
// memory than was asked for.
func TestHostileServer(t *testing.T) {
	object := content(100_000)
	const off, n = 5000, 3000
	ranged := func(w http.ResponseWriter, span, tag string, body []byte) {
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Range", "bytes "+span)
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(body)
	}
	right := object[off : off+n]
	var count atomic.Int64
	attacks := map[string]func(w http.ResponseWriter, r *http.Request){
		"ignores the range": func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(object) },
		"another range": func(w http.ResponseWriter, r *http.Request) {
			ranged(w, "4999-7999/100000", `"1"`, object[off-1:off+n])
		},
		"range in words":   func(w http.ResponseWriter, r *http.Request) { ranged(w, "all of them", `"1"`, right) },
		"range of nothing": func(w http.ResponseWriter, r *http.Request) { ranged(w, "", `"1"`, right) },
		"negative range":   func(w http.ResponseWriter, r *http.Request) { ranged(w, "5000-7999/-3", `"1"`, right) },
		"wrong size":       func(w http.ResponseWriter, r *http.Request) { ranged(w, "5000-7999/9223372036854775807", `"1"`, right) },
		"short body":       func(w http.ResponseWriter, r *http.Request) { ranged(w, "5000-7999/100000", `"1"`, right[:10]) },
		"another version": func(w http.ResponseWriter, r *http.Request) {
			ranged(w, "5000-7999/100000", fmt.Sprintf(`"%d"`, count.Add(1)+1), right)
		},
		"cut body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3000")
			ranged(w, "5000-7999/100000", `"1"`, right[:10])
		},
		"endless body": func(w http.ResponseWriter, r *http.Request) {
			ranged(w, "5000-7999/100000", `"1"`, nil)
			for r.Context().Err() == nil {
				if _, err := w.Write(right); err != nil {
					return
				}
			}
		},
		"stalled body": func(w http.ResponseWriter, r *http.Request) {
			ranged(w, "5000-7999/100000", `"1"`, right[:10])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"endless header": func(w http.ResponseWriter, r *http.Request) {
			for i := range 1 << 14 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1024))
			}
			ranged(w, "5000-7999/100000", `"1"`, right)
		},
		"long ETag": func(w http.ResponseWriter, r *http.Request) {
			ranged(w, "5000-7999/100000", `"`+strings.Repeat("x", 1<<17)+`"`, right)
		},
		"pause of a year": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "31536000")
			w.WriteHeader(503)
		},
		"endless redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, fmt.Sprint("/", count.Add(1)), http.StatusFound)
		},
		"redirect to a file": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(302)
		},
		"compressed": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			ranged(w, "5000-7999/100000", `"1"`, right)
		},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			b, _ := open(t, start(t, http.HandlerFunc(attack)))
			policy := quick
			policy.Stall = 200 * time.Millisecond
			c := requests.NewClient(b, policy)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			dst := make([]byte, n)
			err := c.ReadAt(ctx, remote.Object{Key: "x", Size: int64(len(object)), ETag: `"1"`}, off, dst)
			if err == nil && !bytes.Equal(dst, right) {
				t.Error("wrong bytes, and no error")
			}
			all, _, allErr := c.ReadAll(ctx, "x", 1<<20)
			if allErr == nil && len(all) > 1<<20 {
				t.Errorf("%d bytes", len(all))
			}
			o, statErr := c.Stat(ctx, "x")
			runtime.ReadMemStats(&after)
			if used := int64(after.TotalAlloc - before.TotalAlloc); used > 300<<20 {
				t.Errorf("%d bytes were allocated", used)
			}
			t.Logf("range: %v; whole: %v; stat: %+v, %v", err, allErr, o, statErr)
		})
	}
}

// Resets, slow bodies, 429 and 503 on the way change no byte.
func TestFaultyServer(t *testing.T) {
	var faults atomic.Int64
	data := content(200_000)
	b, _ := open(t, start(t, webtest.Faulty(webtest.Files(fstest.MapFS{"x": {Data: data}}), &faults)))
	c := requests.NewClient(b, remote.Policy{Backoff: time.Millisecond})
	readAll(t, c, "x", data)
	if st := c.Stats(); faults.Load() < 20 || st.Retries < 15 {
		t.Errorf("%d faults, %+v", faults.Load(), st)
	}
}

// readAll reads an object in several ways, and compares it.
func readAll(t *testing.T, c *requests.Client, key string, want []byte) {
	t.Helper()
	o, err := c.Stat(t.Context(), key)
	require.NoError(t, err)
	for off := 0; off < len(want); off += 10_000 {
		got := make([]byte, min(10_000, len(want)-off))
		if err := c.ReadAt(t.Context(), o, int64(off), got); err != nil || !bytes.Equal(got, want[off:off+len(got)]) {
			t.Fatalf("%s from byte %d on: %v", key, off, err)
		}
	}
	r := c.NewReader(t.Context(), o, 0, -1)
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, %v", key, len(got), err)
	}
	if got, _, err := c.ReadAll(t.Context(), key, 1<<30); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, %v", key, len(got), err)
	}
}
