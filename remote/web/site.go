package web

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// site sends requests, and remembers where objects were redirected to.
type site struct {
	client *http.Client

	mu    sync.Mutex
	moved map[string]location // by key; guarded by mu
}

// location is where an object can be read for some time: most such URLs are signed for minutes or
// an hour.
type location struct {
	url   *url.URL
	until time.Time
}

// Limits of redirects and headers.
const (
	locationTime = 5 * time.Minute
	maxLocations = 10_000
	maxRedirects = 10
	maxHeader    = 256 << 10
)

// newSite returns a site with connections of its own.
func newSite() *site {
	t := http.DefaultTransport.(*http.Transport).Clone()
	KeepMany(t)
	t.MaxResponseHeaderBytes = maxHeader
	t.ResponseHeaderTimeout = 30 * time.Second
	return &site{client: &http.Client{Transport: t, CheckRedirect: follow}, moved: make(map[string]location)}
}

// KeepMany gives each read a connection of its own, and keeps as many connections as there may be
// parallel reads. Reads that share one HTTP/2 connection share its flow-control window, which
// limits them together.
func KeepMany(t *http.Transport) {
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2 = false
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 1024, 1024
	t.DisableCompression = true // a range is of the stored bytes
	t.ReadBufferSize = 64 << 10
}

// redirectError says why a redirect is not followed.
type redirectError struct{ text string }

func (e *redirectError) Error() string { return e.text }

// follow allows a redirect to another host, which gets no credentials and does not learn the
// original URL, as that may be signed. It does not allow a redirect from HTTPS to HTTP.
func follow(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	r.Header.Del("Referer")
	switch {
	case len(via) >= maxRedirects:
		return &redirectError{fmt.Sprintf("redirected %d times", maxRedirects)}
	case r.URL.Scheme != "https" && (first.Scheme == "https" || r.URL.Scheme != "http"):
		return &redirectError{fmt.Sprintf("the answer leads from https:// to %s://%s, which is not followed", r.URL.Scheme,
			r.URL.Host)}
	case !sameOrigin(r.URL, first):
		r.Header.Del("Authorization")
	}
	return nil
}

// sameOrigin reports whether two URLs have the same scheme, host and port.
func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// do sends a request for an object: to the remembered location, otherwise to its own URL. If a
// remembered location refuses, its signature may have expired, and the object's own URL is asked
// again.
func (s *site) do(r *http.Request, key string) (*http.Response, error) {
	if at := s.location(key); at != nil {
		again := r.Clone(r.Context())
		again.URL, again.Host = at, ""
		again.Header.Del("Authorization")
		a, err := s.client.Do(again)
		if err != nil || a.StatusCode < 400 || mayPass(a.StatusCode) ||
			a.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			if err != nil {
				s.forget(key)
			}
			return a, err
		}
		a.Body.Close()
		s.forget(key)
	}
	a, err := s.client.Do(r)
	if err == nil && a.StatusCode < 300 && !sameOrigin(a.Request.URL, r.URL) {
		s.remember(key, a.Request.URL)
	}
	return a, err
}

// location returns where a key was redirected to, nil if that is unknown or too old.
func (s *site) location(key string) *url.URL {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.moved[key]; ok && time.Now().Before(l.until) {
		return l.url
	}
	return nil
}

// remember keeps the location of a key for locationTime. The Hub redirects each file to a signed
// URL of another host, and asking again for each range would double the requests.
func (s *site) remember(key string, at *url.URL) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.moved) >= maxLocations {
		clear(s.moved)
	}
	s.moved[key] = location{at, time.Now().Add(locationTime)}
}

// forget drops the location of a key.
func (s *site) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.moved, key)
}
