package web

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/penstock/penstock/remote"
)

// place is the kind of server of a bucket: a web server, or the Hugging Face Hub.
type place interface {
	// String returns the name for Bucket.String.
	String() string

	// request returns the request for an object, with its authorization.
	request(ctx context.Context, key string) (*http.Request, error)

	// tag returns the version of an object, by the header of a response and the object's size.
	tag(h http.Header, size int64) string

	// list does the work of ListPage.
	list(ctx context.Context, prefix, delimiter string) (remote.Page, error)

	// explain returns advice for a refused request, and its sentinel, which may be more precise
	// than kind.
	explain(a *http.Response, kind error) (todo string, _ error)
}

// bucket is the objects of a place, read-only.
type bucket struct {
	place
	site *site
}

// Close closes the connections.
func (b *bucket) Close() error {
	b.site.client.CloseIdleConnections()
	return nil
}

// Stat asks for the first byte and not for HEAD: URLs that are signed for GET refuse HEAD, and many
// servers answer HEAD with another size.
func (b *bucket) Stat(ctx context.Context, key string) (remote.Object, error) {
	a, err := b.get(ctx, "stat", key, 0, 1, "")
	if err != nil {
		return remote.Object{}, err
	}
	a.Body.Close()
	if a.object.Size < 0 {
		return remote.Object{}, remote.NewError("stat", b.name(key), remote.ErrInvalid,
			errors.New("the server does not say how many bytes it has; download it, and use the file"))
	}
	return a.object, nil
}

// ReadRange asks for a range in one request.
func (b *bucket) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	a, err := b.get(ctx, "read", key, off, n, etag)
	if err != nil {
		return remote.Body{}, err
	}
	r := &body{ReadCloser: a.Body, Reader: a.Body, bucket: b, key: key}
	if n >= 0 {
		r.Reader = io.LimitReader(a.Body, n)
	}
	return remote.Body{ReadCloser: r, Object: a.object}, nil
}

// body is the body of a response, whose errors are errors of package remote.
type body struct {
	io.ReadCloser
	io.Reader
	bucket *bucket
	key    string
}

func (r *body) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = remote.NewError("read", r.bucket.name(r.key), nil, err)
	}
	return n, err
}

// ListPage lists objects, if the place can list.
func (b *bucket) ListPage(ctx context.Context, prefix, delimiter string, _ []byte) (remote.Page, error) {
	return b.list(ctx, prefix, delimiter)
}

// NewWriter returns an error: the web is read-only.
func (b *bucket) NewWriter(_ context.Context, key string, _ remote.WriteOptions) (remote.Writer, error) {
	return nil, b.readOnly("write", key)
}

// Copy returns an error.
func (b *bucket) Copy(_ context.Context, _, to string) error { return b.readOnly("copy", to) }

// Delete returns an error.
func (b *bucket) Delete(_ context.Context, key string) error { return b.readOnly("delete", key) }

// readOnly returns the error of an operation that writes.
func (b *bucket) readOnly(op, key string) error {
	return remote.NewError(op, b.name(key), remote.ErrInvalid,
		errors.New("it is read-only; write to a path, or to s3://, gs://, azblob:// or hdfs://"))
}

// name returns the name of an object for errors.
func (b *bucket) name(key string) string { return remote.NameOf(b, key) }
