package remote

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Schemes are those of the URLs that name objects.
var Schemes = []string{"s3", "gs", "azblob", "file"}

// URL is where an object or a folder of objects is: s3://bucket/key?options. The opener of the
// bucket parses what follows the "?". Of file:///data/train/ds the bucket is the folder
// /data/train, and the key is ds.
type URL struct {
	Scheme string
	Bucket string
	Key    string // empty for all of the bucket; never with a slash at either end
	Query  url.Values
	user   *url.Userinfo
}

// IsURL reports whether text is to be taken for a URL and not for a path: it starts with one
// of the Schemes and "://".
func IsURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && slices.Contains(Schemes, scheme)
}

// ParseURL takes a URL apart. Its errors have no secrets in them.
func ParseURL(text string) (*URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // the text around it is the URL itself
		}
		return nil, fmt.Errorf("remote: %s: %s", Redact(text), Redact(err.Error()))
	}
	if !slices.Contains(Schemes, u.Scheme) {
		return nil, fmt.Errorf("remote: %s: its scheme is none of %s", Redact(text), strings.Join(Schemes, ", "))
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("remote: %s: its options cannot be read", Redact(text))
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("remote: %s: write # in a key as %%23", Redact(text))
	}
	out := &URL{Scheme: u.Scheme, Bucket: u.Host, Key: strings.Trim(u.Path, "/"), Query: query, user: u.User}
	if u.Scheme == "file" {
		if u.Host != "" && u.Host != "localhost" {
			return nil, fmt.Errorf("remote: %s: a file URL has three slashes: file:///folder/name", Redact(text))
		}
		out.Bucket, out.Key = path.Split(path.Clean("/" + u.Path))
		out.Bucket = path.Clean(out.Bucket)
	}
	if out.Bucket == "" {
		return nil, fmt.Errorf("remote: %s: it names no bucket", Redact(text))
	}
	return out, nil
}

// Driver returns the URL of the bucket as package gocloud.dev/blob opens it: with the options,
// without the key. It may hold secrets.
func (u *URL) Driver() *url.URL {
	if u.Scheme == "file" {
		return &url.URL{Scheme: u.Scheme, Path: u.Bucket, RawQuery: u.Query.Encode()}
	}
	return &url.URL{Scheme: u.Scheme, User: u.user, Host: u.Bucket, RawQuery: u.Query.Encode()}
}

// Name returns the bucket as Bucket.String does: scheme, bucket and the endpoint, if there is
// one.
func (u *URL) Name() string {
	if u.Scheme == "file" {
		return "file://" + u.Bucket
	}
	name := u.Scheme + "://" + u.Bucket
	if e := u.Query.Get("endpoint"); e != "" {
		name += "?endpoint=" + Redact(e)
	}
	return name
}

// Base returns the last part of the key, or the bucket: a name for people.
func (u *URL) Base() string {
	if u.Key == "" {
		return path.Base(u.Bucket)
	}
	return path.Base(u.Key)
}

// Join returns the URL of an object below this one.
func (u *URL) Join(parts ...string) *URL {
	out := *u
	out.Key = strings.Trim(path.Join(append([]string{u.Key}, parts...)...), "/")
	return &out
}

// String returns the URL for people: without user, password, and all options but the
// harmless ones.
func (u *URL) String() string {
	text := u.Scheme + "://" + u.Bucket
	if u.Key != "" {
		text = strings.TrimSuffix(text, "/") + "/" + u.Key
	}
	return text
}
