package web

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/penstock/penstock/remote"
)

// place serves a bucket: a web server, or the Hugging Face Hub.
type place interface {
	// String names it as Bucket.String does.
	String() string

	// request returns the request for an object, with what authorizes it.
	request(ctx context.Context, key string) (*http.Request, error)

	// tag returns the version of an object of some size by the header of an answer.
	tag(h http.Header, size int64) string

	// list is ListPage.
	list(ctx context.Context, prefix, delimiter string) (remote.Page, error)

	// explain returns what to do about a refusal, and its kind.
	explain(a *http.Response, kind error) (todo string, _ error)
}

// bucket is the objects of a place.
type bucket struct {
	place
	site *site
}

// Close lets go of connections.
func (b *bucket) Close() error {
	b.site.client.CloseIdleConnections()
	return nil
}

// Stat asks for the first byte: what is signed for GET refuses HEAD, and many servers answer that otherwise.
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

// body is the body of an answer; it returns errors of package remote.
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

// ListPage lists what the place can list.
func (b *bucket) ListPage(ctx context.Context, prefix, delimiter string, _ []byte) (remote.Page, error) {
	return b.list(ctx, prefix, delimiter)
}

// NewWriter refuses.
func (b *bucket) NewWriter(_ context.Context, key string, _ remote.WriteOptions) (remote.Writer, error) {
	return nil, b.readOnly("write", key)
}

// Copy refuses.
func (b *bucket) Copy(_ context.Context, _, to string) error { return b.readOnly("copy", to) }

// Delete refuses.
func (b *bucket) Delete(_ context.Context, key string) error { return b.readOnly("delete", key) }

func (b *bucket) readOnly(op, key string) error {
	return remote.NewError(op, b.name(key), remote.ErrInvalid,
		errors.New("it is read-only; write to a path, or to s3://, gs://, azblob:// or hdfs://"))
}

// name returns where an object is, for people.
func (b *bucket) name(key string) string { return remote.NameOf(b, key) }
