package web

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// site sends requests, and remembers where they were led to.
type site struct {
	client *http.Client

	mu    sync.Mutex
	moved map[string]location // by key
}

// location is where an object is for some time: most such URLs are signed for minutes or an hour.
type location struct {
	url   *url.URL
	until time.Time
}

const (
	locationTime = 5 * time.Minute
	maxLocations = 10_000
	maxRedirects = 10
	maxHeader    = 256 << 10
)

func newSite() *site {
	t := http.DefaultTransport.(*http.Transport).Clone()
	KeepMany(t)
	t.MaxResponseHeaderBytes = maxHeader
	t.ResponseHeaderTimeout = 30 * time.Second
	return &site{client: &http.Client{Transport: t, CheckRedirect: follow}, moved: make(map[string]location)}
}

// KeepMany has each read go over a connection of its own, as those that share one of HTTP/2 share its window, and
// keeps as many as there are reads at a time.
func KeepMany(t *http.Transport) {
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2 = false
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 1024, 1024
	t.DisableCompression = true // a range is one of stored bytes
	t.ReadBufferSize = 64 << 10
}

// redirectError says why a redirect is not followed.
type redirectError struct{ text string }

func (e *redirectError) Error() string { return e.text }

// follow lets an answer lead to another host, which gets no credentials and does not learn from which URL, as that
// may be signed. It does not lead from HTTPS to HTTP.
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

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// do sends a request for an object: to the location that redirected the one before it, or to its own URL. If a
// remembered location refuses, its own URL is asked again.
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

func (s *site) location(key string) *url.URL {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.moved[key]; ok && time.Now().Before(l.until) {
		return l.url
	}
	return nil
}

// remember keeps where a server redirected a key to, for a time: hubs redirect each file to a signed URL of another
// host, and asking again for each range would double the requests.
func (s *site) remember(key string, at *url.URL) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.moved) >= maxLocations {
		clear(s.moved)
	}
	s.moved[key] = location{at, time.Now().Add(locationTime)}
}

func (s *site) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.moved, key)
}
