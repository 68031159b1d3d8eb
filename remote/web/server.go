package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/penstock/penstock/remote"
)

// server is the files of a web server.
type server struct {
	name  string
	base  *url.URL // with the query that each request has
	site  *site
	user  *url.Userinfo
	login string // where user comes from, for errors
}

// newServer takes the login from the URL or, for https only, from ~/.netrc: a password must not go over the network in
// the clear because a URL lacks an s.
func newServer(u *remote.URL, s *site) (*server, error) {
	w := &server{name: u.Name(), base: u.Driver(), site: s}
	w.user, w.base.User = w.base.User, nil
	w.login = "the login of the URL"
	if w.user == nil && w.base.Scheme == "https" {
		var err error
		if w.user, w.login, err = netrcLogin(w.base.Hostname()); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *server) String() string { return w.name }

func (w *server) request(ctx context.Context, key string) (*http.Request, error) {
	at := *w.base
	at.Path = "/" + key
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err == nil && w.user != nil {
		password, _ := w.user.Password()
		r.SetBasicAuth(w.user.Username(), password)
	}
	return r, err
}

func (w *server) tag(h http.Header, size int64) string { return versionOf(h, size) }

// manifest marks the files next to it as a dataset.
const manifest = "manifest.json"

// list finds a dataset by its manifest, the only file that is known to exist: servers have no
// listings for programs.
func (w *server) list(ctx context.Context, prefix, _ string) (remote.Page, error) {
	b := &bucket{w, w.site}
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		o, err := b.Stat(ctx, prefix+manifest)
		if err == nil {
			return remote.Page{Objects: []remote.Object{o}}, nil
		}
		if !errors.Is(err, remote.ErrNotFound) {
			return remote.Page{}, err
		}
	}
	return remote.Page{}, remote.NewError("list", b.name(prefix), remote.ErrNotFound,
		errors.New("a web server does not list its folders; name a file, or a folder that has a "+manifest))
}

// explain says which credentials a refused request had. After a redirect to another host it had
// none, see follow.
func (w *server) explain(a *http.Response, kind error) (todo string, _ error) {
	switch {
	case kind != remote.ErrPermission:
		return "", kind
	case !sameOrigin(a.Request.URL, w.base):
		return fmt.Sprintf("%s, to which the answer led, got no credentials", a.Request.URL.Host), kind
	case w.user != nil:
		return w.login + " was sent", kind
	}
	return fmt.Sprintf("no credentials were sent; put the login for %s into ~/.netrc", w.base.Hostname()), kind
}
