package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/remote"
)

// answer is a response that has the bytes that were asked for.
type answer struct {
	*http.Response
	object remote.Object
}

// get asks for bytes [off, off+n) of an object, or for all bytes from off on if n is -1, in the
// version etag unless that is empty. The answer begins with these bytes. Only strong ETags go into
// the request (RFC 9110 section 13.1.1); other versions are compared afterwards.
func (b *bucket) get(ctx context.Context, op, key string, off, n int64, etag string) (*answer, error) {
	r, err := b.request(ctx, key)
	if err != nil {
		return nil, b.failed(ctx, op, key, err)
	}
	switch {
	case n >= 0:
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+max(n, 1)-1))
	case off > 0:
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", off))
	}
	if strings.HasPrefix(etag, `"`) {
		r.Header.Set("If-Match", etag)
	}
	a, err := b.site.do(r, key)
	if err != nil {
		return nil, b.failed(ctx, op, key, err)
	}
	o, err := b.check(a, op, key, off)
	if err == nil && etag != "" && o.ETag != "" && o.ETag != etag {
		err = remote.NewError(op, b.name(key), remote.ErrChanged, nil)
	}
	if err != nil {
		a.Body.Close()
		return nil, err
	}
	return &answer{a, o}, nil
}

// check makes sure that a response has bytes from off on, and returns what it says about the
// object. Servers that ignore Range send the whole file, which is accepted for off 0 only.
func (b *bucket) check(a *http.Response, op, key string, off int64) (remote.Object, error) {
	o := remote.Object{Key: key, Size: -1}
	fail := func(kind error, format string, args ...any) (remote.Object, error) {
		return o, remote.NewError(op, b.name(key), kind, fmt.Errorf(format, args...))
	}
	switch begin, size, ok := contentRange(a.Header.Get("Content-Range")); {
	case a.StatusCode < 300 && strings.HasSuffix(a.Request.URL.Path, "/"):
		return fail(remote.ErrNotFound, "it is a folder")
	case a.StatusCode == http.StatusRequestedRangeNotSatisfiable && ok && size == off:
		a.Body.Close()
		a.Body = http.NoBody // the object ends at off
		o.Size = size
	case a.StatusCode == http.StatusPartialContent && (!ok || begin != off):
		return fail(nil, "asked for the bytes from %d on, it answers with %.60q", off, a.Header.Get("Content-Range"))
	case a.StatusCode == http.StatusPartialContent:
		o.Size = size
	case a.StatusCode != http.StatusOK:
		return o, b.refused(a, op, key)
	case off > 0:
		return fail(remote.ErrInvalid, "the server sends whole files only, as Python's http.server does; use one that "+
			"answers requests for ranges, such as nginx, or download the file")
	default:
		o.Size = a.ContentLength
	}
	o.ETag = b.tag(a.Header, o.Size)
	return o, nil
}

// contentRange parses "bytes 100-199/1000" or "bytes */1000", for which begin is -1 (RFC 9110
// section 14.4). An unknown size is -1.
func contentRange(text string) (begin, size int64, ok bool) {
	span, total, ok1 := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	from, _, ok2 := strings.Cut(span, "-")
	begin, size = -1, -1
	var err error
	if span != "*" {
		if begin, err = strconv.ParseInt(from, 10, 64); err != nil || !ok2 {
			return -1, -1, false
		}
	}
	if total != "*" {
		if size, err = strconv.ParseInt(total, 10, 64); err != nil || size < begin {
			return -1, -1, false
		}
	}
	return begin, size, ok1
}

// maxTag bounds the length of a version, which is kept with each fetched block.
const maxTag = 1 << 10

// versionOf returns a strong ETag of an object or, if it has no strong ETag, everything else that
// tells versions apart: weak ETag, time and size. "" means that the server says nothing.
func versionOf(h http.Header, size int64) string {
	etag, date := h.Get("ETag"), h.Get("Last-Modified")
	switch {
	case len(etag)+len(date) > maxTag:
		return ""
	case strings.HasPrefix(etag, `"`):
		return etag
	case etag == "" && date == "" && size < 0:
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %d bytes", etag, date, size))
}

// kinds has the sentinels of refusals that a retry does not change.
var kinds = map[int]error{
	http.StatusUnauthorized: remote.ErrPermission, http.StatusForbidden: remote.ErrPermission,
	http.StatusProxyAuthRequired: remote.ErrPermission,
	http.StatusNotFound:          remote.ErrNotFound, http.StatusGone: remote.ErrNotFound,
	http.StatusPreconditionFailed: remote.ErrChanged,
	http.StatusNotImplemented:     remote.ErrInvalid,
}

// mayPass reports whether a server that answers with this status may answer otherwise in a moment.
func mayPass(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented ||
		status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests
}

// refused returns the error for a response that is a refusal.
func (b *bucket) refused(a *http.Response, op, key string) error {
	kind := kinds[a.StatusCode]
	if kind == nil && !mayPass(a.StatusCode) {
		kind = remote.ErrInvalid
	}
	text := "HTTP status " + strconv.Itoa(a.StatusCode) // the words after the number are the server's, and may say anything
	todo, kind := b.explain(a, kind)
	if todo != "" {
		text += "; " + todo
	}
	wait := retryAfter(a.Header, time.Now())
	if wait > 0 {
		text += fmt.Sprintf("; it asks for a pause of %v", wait)
	}
	e := remote.NewError(op, b.name(key), kind, errors.New(text))
	e.After = wait
	return e
}

// retryAfter returns the pause that a server asks for, at most a day: Retry-After, in seconds or as
// a date (RFC 9110 section 10.2.3), or the Hub's RateLimit header, such as `"api";r=0;t=55`: no
// requests left for 55 seconds.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const most = 24 * time.Hour
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(most, time.Duration(seconds)*time.Second)
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, min(most, date.Sub(now)))
	}
	for part := range strings.SplitSeq(h.Get("RateLimit"), ";") {
		if t, ok := strings.CutPrefix(strings.TrimSpace(part), "t="); ok && strings.Contains(h.Get("RateLimit"), "r=0") {
			seconds, _ := strconv.ParseUint(t, 10, 32)
			return min(most, time.Duration(seconds)*time.Second)
		}
	}
	return 0
}

// failed returns the error of a request without a response. It leaves the URL out, which may be
// signed.
func (b *bucket) failed(ctx context.Context, op, key string, err error) error {
	var known *remote.Error
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.As(err, &known) {
		return known
	}
	for around := (*url.Error)(nil); errors.As(err, &around); around = nil {
		err = around.Err
	}
	kind, todo := error(nil), ""
	var untrusted *tls.CertificateVerificationError
	var refused *redirectError
	switch {
	case errors.As(err, &untrusted):
		kind, todo = remote.ErrInvalid, "; name a file with its authority: SSL_CERT_FILE"
	case errors.As(err, &refused):
		kind = remote.ErrInvalid
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		kind, todo = remote.ErrInvalid, "; the server speaks HTTP: write http://"
	}
	return remote.NewError(op, b.name(key), kind, text{err.Error() + todo, err})
}

// text is an error with another text.
type text struct {
	text string
	error
}

func (t text) Error() string { return t.text }
func (t text) Unwrap() error { return t.error }
