package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// schemes are the schemes of URLs that can name objects.
var schemes = []string{"s3", "gs", "azblob", "hdfs", "https", "http", "hf", "file"}

// SchemeList names the schemes of URLs, for people.
func SchemeList() string {
	last := len(schemes) - 1
	return strings.Join(schemes[:last], "://, ") + ":// and " + schemes[last] + "://"
}

// URL is the place of an object or a folder of objects: s3://bucket/key?options. The opener of the bucket parses the
// options after "?". In file:///data/train/ds the bucket is the folder /data/train, and the key is ds. In
// https://host/a/b the bucket is host, and the Query belongs to each request. In hf://datasets/NAME@REV/a/b the bucket
// is datasets/NAME@REV.
type URL struct {
	Scheme string
	Bucket string
	Key    string // empty for all of the bucket; never with a slash at either end
	Query  url.Values
	user   *url.Userinfo
	raw    string // Query as it was given, whose order a signature may cover
}

// IsURL reports whether text is a URL and not a path: it starts with one of the known schemes, in upper or lower case,
// and "://".
func IsURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && slices.Contains(schemes, strings.ToLower(scheme))
}

// ParseURL takes a URL apart. Its errors have no secrets in them.
func ParseURL(text string) (*URL, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	authority, _, _ := strings.Cut(rest, "/")
	if _, query, _ := strings.Cut(rest, "?"); strings.ContainsAny(authority+query, unquoted) {
		return nil, fmt.Errorf("remote: a URL of %s://: its login or options have a space or a quote; write a space as %%20",
			Redact(scheme))
	}
	u, err := url.Parse(text)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // the text of the outer error has the URL, and so its secrets
		}
		return nil, fmt.Errorf("remote: %s: %s", Redact(text), Redact(err.Error()))
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("remote: %s: its scheme is none of %s", Redact(text), SchemeList())
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("remote: %s: its options cannot be read", Redact(text))
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("remote: %s: write # in a key as %%23", Redact(text))
	}
	out := &URL{Scheme: u.Scheme, Bucket: u.Host, Key: strings.Trim(u.Path, "/"), Query: query, user: u.User,
		raw: u.RawQuery}
	switch u.Scheme {
	case "file":
		err = out.splitFile(u)
	case "hf":
		err = out.splitHub(u)
	case "http", "https":
		if strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") {
			err = errors.New("a name with an escaped slash, %2F, cannot be read; download the file and use its path")
		}
	}
	if err == nil && out.Bucket == "" {
		err = errors.New("it names no " + out.container())
	}
	if err != nil {
		return nil, fmt.Errorf("remote: %s: %w", Redact(text), err)
	}
	return out, nil
}

// splitFile sets bucket and key of a file URL: the folder, and the name in it.
func (u *URL) splitFile(of *url.URL) error {
	if of.Host != "" && of.Host != "localhost" {
		return errors.New("a file URL has three slashes: file:///folder/name")
	}
	u.Bucket, u.Key = path.Split(path.Clean("/" + of.Path))
	u.Bucket = path.Clean(u.Bucket)
	return nil
}

// hubPath matches NAME@REV/PATH, where NAME has one or two parts. A revision with a slash must be one of the Hub's own
// branches; in any other revision the slash is escaped.
var hubPath = regexp.MustCompile(`^/([\w.-]+(?:/[\w.-]+)?)(?:@(refs/(?:convert|pr)/[\w.-]+|[^/@]+))?(?:/(.*))?$`)

// splitHub takes apart the form that Hugging Face's libraries use for a file of a dataset.
func (u *URL) splitHub(of *url.URL) error {
	m := hubPath.FindStringSubmatch(of.EscapedPath())
	if of.Host != "datasets" || of.User != nil || m == nil {
		return errors.New("write it as hf://datasets/NAME@REV/PATH")
	}
	rev, err := url.PathUnescape(m[2])
	if err != nil {
		return err
	}
	rest, err := url.PathUnescape(m[3])
	if err != nil {
		return err
	}
	u.Bucket, u.Key = "datasets/"+m[1], strings.Trim(rest, "/")
	if rev != "" {
		u.Bucket += "@" + rev
	}
	return nil
}

// container returns the word for the bucket of a URL.
func (u *URL) container() string {
	switch u.Scheme {
	case "http", "https":
		return "host"
	case "hdfs":
		return "namenode: write hdfs://HOST:8020/PATH, or the name of the cluster in HADOOP_CONF_DIR"
	}
	return "bucket"
}

// ReadOnly reports whether nothing can be written to the URL.
func (u *URL) ReadOnly() bool { return u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "hf" }

// Driver returns the URL of the bucket as its opener takes it: with options, without the key. It
// may contain secrets, so it is never printed.
func (u *URL) Driver() *url.URL {
	if u.Scheme == "file" {
		return &url.URL{Scheme: u.Scheme, Path: u.Bucket, RawQuery: u.Query.Encode()}
	}
	return &url.URL{Scheme: u.Scheme, User: u.user, Host: u.Bucket, RawQuery: u.raw}
}

// Name returns the bucket like Bucket.String: scheme, bucket and the endpoint, if the URL has an endpoint.
func (u *URL) Name() string {
	if u.Scheme == "file" {
		return "file://" + u.Bucket
	}
	name := u.Scheme + "://" + u.Bucket
	if strings.HasPrefix(u.Scheme, "http") {
		if u.raw != "" { // the query may be a signature and decides what the server answers, so a digest stands for it
			sum := sha256.Sum256([]byte(u.raw))
			name += "?query=" + hex.EncodeToString(sum[:6])
		}
		return name
	}
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

// Join returns the URL of an object below this URL.
func (u *URL) Join(parts ...string) *URL {
	out := *u
	out.Key = strings.Trim(path.Join(append([]string{u.Key}, parts...)...), "/")
	return &out
}

// String returns the URL for people, without user, password and options.
func (u *URL) String() string {
	text := u.Scheme + "://" + u.Bucket
	if u.Key != "" {
		text = strings.TrimSuffix(text, "/") + "/" + u.Key
	}
	return text
}
