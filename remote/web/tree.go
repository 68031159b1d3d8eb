package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/penstock/penstock/remote"
)

// tree is the listing of a folder on the Hub, which comes in pages of the Hub's own order. Pages
// that have arrived are kept, so that after a failure only the failed request is repeated; the
// listing of a commit does not change.
type tree struct {
	mu      sync.Mutex
	begun   bool
	next    *url.URL // the next page to fetch; nil after the last
	pages   int
	objects []remote.Object
}

// maxTreePages bounds a listing; a page has up to 1000 names.
const maxTreePages = 900

// entry is an element of a page. A file in LFS has its true size there.
type entry struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	LFS  *struct {
		Size int64 `json:"size"`
	} `json:"lfs"`
}

// list fetches one page of the Hub. Bucket.ListPage must return keys in order, which is known only
// at the end: all pages but the last are returned empty, and the last has all names.
func (h *hub) list(ctx context.Context, prefix, delimiter string) (remote.Page, error) {
	commit, err := h.pin(ctx)
	if err != nil {
		return remote.Page{}, err
	}
	t := h.tree(prefix, delimiter)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		folder := strings.TrimSuffix(prefix[:strings.LastIndexByte(prefix, '/')+1], "/")
		t.begun, t.next = true, h.endpoint.JoinPath("api/datasets", h.dataset, "tree", commit, escape(folder))
		t.next.RawQuery = fmt.Sprintf("recursive=%t", delimiter == "")
	}
	if t.next != nil {
		if err := h.addPage(ctx, t, prefix, delimiter); err != nil {
			return remote.Page{}, err
		}
	}
	if t.next != nil {
		return remote.Page{Next: fmt.Append(nil, t.pages)}, nil
	}
	return remote.Page{Objects: slices.Clone(t.objects)}, nil
}

// tree returns the listing for a prefix and a delimiter, and begins it if it is new.
func (h *hub) tree(prefix, delimiter string) *tree {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := delimiter + "\x00" + prefix
	if h.trees[id] == nil {
		if len(h.trees) >= maxTrees {
			clear(h.trees)
		}
		h.trees[id] = new(tree)
	}
	return h.trees[id]
}

// maxTrees bounds the number of listings that are kept.
const maxTrees = 1000

// addPage fetches the next page and adds its names.
func (h *hub) addPage(ctx context.Context, t *tree, prefix, delimiter string) error {
	var page []entry
	header, err := h.json(ctx, "list", t.next, &page)
	if errors.Is(err, remote.ErrNotFound) && t.pages == 0 {
		t.next = nil // the folder does not exist
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range page {
		if o, ok := e.object(prefix, delimiter); ok {
			if !o.Folder {
				o.ETag = h.tag(nil, o.Size)
			}
			t.objects = append(t.objects, o)
		}
	}
	t.pages++
	if t.next, err = nextPage(t.next, header.Values("Link")); err != nil {
		return h.wrong("list", err)
	}
	if t.pages == maxTreePages && t.next != nil {
		return h.wrong("list", fmt.Errorf("the folder %q has more than %d pages of names", prefix, maxTreePages))
	}
	slices.SortFunc(t.objects, func(a, b remote.Object) int { return strings.Compare(a.Key, b.Key) })
	return nil
}

// object returns an element as an Object, or false if it was not asked for. Paths come from the
// server, so they must be clean.
func (e entry) object(prefix, delimiter string) (remote.Object, bool) {
	if e.Path == "" || path.Clean("/"+e.Path) != "/"+e.Path {
		return remote.Object{}, false
	}
	o := remote.Object{Key: e.Path, Size: e.Size}
	if e.LFS != nil {
		o.Size = e.LFS.Size
	}
	if e.Type == "directory" {
		o = remote.Object{Key: e.Path + "/", Folder: true}
	}
	rest, ok := strings.CutPrefix(o.Key, prefix)
	inner := strings.TrimSuffix(rest, "/")
	return o, ok && o.Size >= 0 && inner != "" && (e.Type == "file" || e.Type == "directory" && delimiter != "") &&
		!(delimiter == "/" && strings.Contains(inner, "/"))
}

// nextLink matches the next page in a Link header (RFC 8288).
var nextLink = regexp.MustCompile(`<([^<>]+)>\s*;\s*rel="?next"?`)

// nextPage returns the URL of the next page, nil after the last. It must be on the same server, as
// the token is sent there, and differ from this page.
func nextPage(this *url.URL, links []string) (*url.URL, error) {
	m := nextLink.FindStringSubmatch(strings.Join(links, ", "))
	if m == nil {
		return nil, nil
	}
	next, err := this.Parse(m[1])
	if err != nil || !sameOrigin(next, this) {
		return nil, errors.New("the listing continues on another server")
	}
	if next.String() == this.String() {
		return nil, errors.New("the listing begins again where it was: it would never end")
	}
	return next, nil
}
