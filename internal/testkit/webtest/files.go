// Package webtest is, for tests, web servers as they are met: one of files, the Hub of Hugging Face, and what is
// wrong on the way to them.
package webtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Files serves files with ranges and ETags, and no listings.
func Files(fsys fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, fsys, strings.TrimPrefix(r.URL.Path, "/"))
	})
}

func serve(w http.ResponseWriter, r *http.Request, fsys fs.FS, name string) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%08x"`, crc32.ChecksumIEEE(data)))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// Hub is the Hub, with one dataset. Its files of more than 1 KiB are on another server, CDN.
type Hub struct {
	Dataset string // NAME
	Branch  string // the only one
	Commit  string
	Files   fs.FS
	Token   string // that is needed; empty is none
	CDN     string // URL of a server of Files
	Page    int    // names of a page of a listing

	Resolved atomic.Int64 // requests for files
}

// ServeHTTP answers as the API of the Hub does, see https://huggingface.co/docs/hub/api.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code string) {
		w.Header().Set("X-Error-Code", code)
		w.WriteHeader(status)
	}
	if h.Token != "" && r.Header.Get("Authorization") != "Bearer "+h.Token {
		refuse(http.StatusUnauthorized, "RepoNotFound")
		return
	}
	api, isAPI := strings.CutPrefix(r.URL.EscapedPath(), "/api")
	rest, ok := strings.CutPrefix(api, "/datasets/"+h.Dataset+"/")
	verb, rest, _ := strings.Cut(rest, "/")
	rev, name, _ := strings.Cut(rest, "/")
	rev, _ = url.PathUnescape(rev)
	name, _ = url.PathUnescape(name)
	switch {
	case !ok:
		refuse(http.StatusNotFound, "RepoNotFound")
	case rev != h.Branch && rev != h.Commit:
		refuse(http.StatusNotFound, "RevisionNotFound")
	case isAPI && verb == "revision":
		_ = json.NewEncoder(w).Encode(map[string]string{"sha": h.Commit, "id": h.Dataset})
	case isAPI && verb == "tree":
		h.tree(w, r, name)
	case !isAPI && verb == "resolve":
		h.Resolved.Add(1)
		info, err := fs.Stat(h.Files, name)
		switch {
		case err != nil || info.IsDir():
			refuse(http.StatusNotFound, "EntryNotFound")
		case info.Size() > 1<<10 && h.CDN != "":
			http.Redirect(w, r, h.CDN+(&url.URL{Path: "/" + name}).EscapedPath()+"?X-Amz-Signature=signed", http.StatusFound)
		default:
			serve(w, r, h.Files, name)
		}
	default:
		refuse(http.StatusNotFound, "EntryNotFound")
	}
}

// tree sends a page of a listing: folders first, then files.
func (h *Hub) tree(w http.ResponseWriter, r *http.Request, folder string) {
	type entry struct {
		Type string `json:"type"`
		Path string `json:"path"`
		Size int64  `json:"size"`
	}
	var list []entry
	root := path.Join(".", folder)
	err := fs.WalkDir(h.Files, root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == root:
		case e.IsDir():
			list = append(list, entry{"directory", name, 0})
			if r.URL.Query().Get("recursive") != "true" {
				return fs.SkipDir
			}
		default:
			info, err := e.Info()
			if err != nil {
				return err
			}
			list = append(list, entry{"file", name, info.Size()})
		}
		return nil
	})
	if err != nil {
		w.Header().Set("X-Error-Code", "EntryNotFound")
		w.WriteHeader(http.StatusNotFound)
		return
	}
	slices.SortStableFunc(list, func(a, b entry) int { return strings.Compare(a.Type, b.Type) })
	first := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &first)
	end := len(list)
	if h.Page > 0 && first+h.Page < end {
		end = first + h.Page
		next := *r.URL
		q := next.Query()
		q.Set("cursor", fmt.Sprint(end))
		next.RawQuery = q.Encode()
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s>; rel="next"`, r.Host, next.RequestURI()))
	}
	_ = json.NewEncoder(w).Encode(list[min(first, end):end])
}

// Faulty answers as a handler does, after up to four faults of each request: a reset in the middle of the body, a slow
// body, 429, and 503. It counts them.
func Faulty(h http.Handler, faults *atomic.Int64) http.Handler {
	var mu sync.Mutex
	counts := make(map[string]uint32)
	next := func(r *http.Request) uint32 {
		_, end, _ := strings.Cut(r.Header.Get("Range"), "-") // which stays what it is when a body is resumed
		key := r.URL.Path + " " + end
		mu.Lock()
		defer mu.Unlock()
		counts[key]++
		return counts[key]
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := next(r)
		if n <= 4 {
			faults.Add(1)
		}
		switch n {
		case 1:
			w = &resetting{w, 300}
		case 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case 4:
			w = slow{w}
		}
		h.ServeHTTP(w, r)
	})
}

// resetting ends a connection after some bytes of a body.
type resetting struct {
	http.ResponseWriter
	left int
}

func (w *resetting) Write(p []byte) (int, error) {
	n := min(w.left, len(p))
	w.left -= n
	if _, err := w.ResponseWriter.Write(p[:n]); err != nil {
		return 0, err
	}
	if w.left > 0 {
		return n, nil
	}
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.Flush()
	if c, _, err := control.Hijack(); err == nil {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		c.Close()
	}
	panic(http.ErrAbortHandler)
}

// slow sends a body a few bytes at a time.
type slow struct{ http.ResponseWriter }

func (w slow) Write(p []byte) (int, error) {
	control := http.NewResponseController(w.ResponseWriter)
	for at := 0; at < len(p); {
		n := min(max(1, len(p)/8), len(p)-at)
		if _, err := w.ResponseWriter.Write(p[at : at+n]); err != nil {
			return at, err
		}
		_ = control.Flush()
		time.Sleep(time.Millisecond)
		at += n
	}
	return len(p), nil
}
