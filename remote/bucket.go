package remote

import (
	"context"
	"io"
	"strings"
	"time"
)

// Bucket is a store of objects: bytes under a key. Keys are UTF-8 with "/" between their parts, and neither start nor
// end with "/". All methods may be called from any goroutine; they do not retry. An error is a *Error or the error of
// the context.
type Bucket interface {
	// String names the bucket without credentials, such as "s3://lab". Equal names are the same
	// bucket.
	String() string

	// Stat returns an object's size and version.
	Stat(ctx context.Context, key string) (Object, error)

	// ReadRange returns the bytes [off, off+n) of an object, fewer if the object ends before; n of -1 means all bytes
	// from off on. If etag is not empty and the object has another one by now, the error is ErrChanged: two ranges of
	// different versions must never be joined. If the connection breaks, reading ends early with an error. The caller
	// closes the reader.
	ReadRange(ctx context.Context, key string, off, n int64, etag string) (Body, error)

	// ListPage returns objects whose keys start with prefix, in the order of their keys, from the place that the token
	// of the previous page names; a nil token is the first page. If delimiter is not empty, all keys that have the
	// delimiter after the prefix are joined into one Object with Folder set, whose key ends with the delimiter.
	ListPage(ctx context.Context, prefix, delimiter string, token []byte) (Page, error)

	// NewWriter returns a writer of one object. The object appears with the writer's Commit, and replaces an existing
	// one.
	NewWriter(ctx context.Context, key string, opts WriteOptions) (Writer, error)

	// Copy copies an object inside the store, without a download. It replaces an existing object.
	Copy(ctx context.Context, from, to string) error

	// Delete removes an object. A missing object is ErrNotFound.
	Delete(ctx context.Context, key string) error

	// Close lets go of connections. Readers and writers must be closed before.
	Close() error
}

// Object describes an object, or a folder in a listing.
type Object struct {
	Key      string
	Size     int64
	ETag     string    // identifies the version; empty if the store does not report it, as in some listings
	Modified time.Time // zero if the store does not say, and in the Object of a Body
	Folder   bool      // in listings: not an object, but the common start of several keys
}

// Body is the content of a part of an object. Object describes the object as far as the store says;
// a Size of -1 and an empty ETag are unknown.
type Body struct {
	io.ReadCloser
	Object Object
}

// Page is a part of a listing.
type Page struct {
	Objects []Object
	Next    []byte // the token of the next page; nil after the last
}

// WriteOptions configures a Writer.
type WriteOptions struct {
	IfNotExist  bool   // Commit returns ErrExists if an object has the key
	ContentType string // empty means application/octet-stream
	PartBytes   int    // size of the parts in which the object is sent; 0 means what suits the store
	Parts       int    // parts that are sent at the same time, if the store can; 0 means what suits the store
}

// Writer writes an object: Write as often as you like, then Commit. Close without Commit
// aborts: parts that were sent are removed, and the object is unchanged. Close after Commit
// does nothing, so it can be deferred.
type Writer interface {
	io.Writer
	Commit() error
	Close() error
}

// NameOf returns the name of an object of a bucket for people: the key comes before the options of the bucket's name.
func NameOf(b Bucket, key string) string {
	name, options, ok := strings.Cut(b.String(), "?")
	name = strings.TrimSuffix(name, "/") + "/" + key
	if ok {
		name += "?" + options
	}
	return name
}
