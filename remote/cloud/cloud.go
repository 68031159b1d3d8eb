//go:build !nocloud

package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // for azblob://
	_ "gocloud.dev/blob/fileblob"  // for file://
	_ "gocloud.dev/blob/s3blob"    // for s3://

	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/hdfs"
	"github.com/penstock/penstock/remote/web"
)

// Built reports whether the SDKs of the clouds are part of the program.
const Built = true

// Open opens the bucket of a URL, and returns it with the parsed URL, whose Key is the part after
// the bucket. Open makes no request, so a bucket that does not exist is found out by the first
// request. For file:///folder/name, Open creates folder if it does not exist.
func Open(ctx context.Context, text string) (remote.Bucket, *remote.URL, error) {
	u, err := remote.ParseURL(text)
	if err != nil {
		return nil, nil, err
	}
	switch u.Scheme {
	case "https", "http", "hf":
		b, err := web.Open(u)
		return b, u, err
	case "hdfs":
		b, err := hdfs.Open(u)
		return b, u, err
	}
	b, err := openSDK(ctx, u)
	return b, u, err
}

// openSDK opens a bucket with gocloud.dev.
func openSDK(ctx context.Context, u *remote.URL) (remote.Bucket, error) {
	driver := u.Driver()
	if u.Scheme == "file" {
		q := driver.Query()
		q.Set("metadata", "skip") // no additional files beside the objects
		q.Set("create_dir", "true")
		q.Set("no_tmp_dir", "true") // a temporary name on another disk could not be renamed
		driver.RawQuery = q.Encode()
	}
	open := func(ctx context.Context, u *url.URL) (*blob.Bucket, error) { return blob.OpenBucket(ctx, u.String()) }
	if u.Scheme == "gs" {
		open = openGoogle
	}
	b, err := open(ctx, driver)
	if err != nil {
		// The error's text may have the whole URL in it, with options that are secrets.
		text := strings.ReplaceAll(err.Error(), driver.String(), u.String())
		advice := adviceFor(text)
		return nil, remote.NewError("open", u.String(), cmp.Or(advice.kind, remote.ErrInvalid), errors.New(text+advice.todo))
	}
	var amazon *s3.Client
	if b.As(&amazon) {
		quiet, err := quietCredentials(ctx, driver.Query())
		if err != nil {
			return nil, remote.NewError("open", u.String(), remote.ErrInvalid, err)
		}
		*amazon = *s3.New(amazon.Options(), ownConnections, quiet)
	}
	return &bucket{blob: b, name: u.Name(), scheme: u.Scheme}, nil
}

// bucket is a blob.Bucket of gocloud.dev as a remote.Bucket.
type bucket struct {
	blob   *blob.Bucket
	name   string
	scheme string
}

// String returns scheme, name and endpoint.
func (b *bucket) String() string { return b.name }

// Close closes the connections.
func (b *bucket) Close() error { return b.blob.Close() }

// guard turns a panic of the libraries into an error: they take for granted that an answer has all
// its parts.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the answer is not one of such a store: %v", p)
	}
}

// Stat asks for an object's attributes. Google's version is a generation and not the ETag, because
// reads can be limited to a generation.
func (b *bucket) Stat(ctx context.Context, key string) (_ remote.Object, err error) {
	defer guard(&err)
	a, err := b.blob.Attributes(ctx, key)
	if err != nil {
		return remote.Object{}, b.mark(ctx, "stat", key, err)
	}
	o := remote.Object{Key: key, Size: a.Size, ETag: a.ETag, Modified: a.ModTime}
	var google storage.ObjectAttrs
	if a.As(&google) {
		o.ETag = generationTag(google.Generation)
	}
	return o, nil
}

// ReadRange asks for a range in one request, which the store refuses if the object has another
// version. The answer is checked, too.
func (b *bucket) ReadRange(ctx context.Context, key string, off, n int64, etag string) (_ remote.Body, err error) {
	defer guard(&err)
	pinned := pin{etag: etag}
	r, err := b.blob.NewRangeReader(ctx, key, off, n, &blob.ReaderOptions{BeforeRead: pinned.before})
	if err != nil {
		return remote.Body{}, b.mark(ctx, "read", key, err)
	}
	// A proxy or an imitation of the store may support neither versions nor ranges.
	tag := tagOf(r)
	if etag != "" && tag != "" && tag != etag {
		r.Close()
		return remote.Body{}, remote.NewError("read", b.object(key), remote.ErrChanged, nil)
	}
	if begin, known := beginOf(r); known && begin != off {
		r.Close()
		return remote.Body{},
			remote.NewError("read", b.object(key), nil,
				fmt.Errorf("asked for the bytes from %d on, it answers with those from %d on", off, begin))
	}
	o := remote.Object{Key: key, Size: r.Size(), ETag: cmp.Or(etag, tag)}
	return remote.Body{ReadCloser: body{r, ctx, b, key}, Object: o}, nil
}

// body is a reader whose errors are errors of package remote.
type body struct {
	*blob.Reader
	ctx    context.Context
	bucket *bucket
	key    string
}

func (r body) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = r.bucket.mark(r.ctx, "read", r.key, err)
	}
	return n, err
}

// ListPage asks for a page of names.
func (b *bucket) ListPage(ctx context.Context, prefix, delimiter string, token []byte) (_ remote.Page, err error) {
	defer guard(&err)
	if token == nil {
		token = blob.FirstPageToken
	}
	list, next, err := b.blob.ListPage(ctx, token, pageObjects, &blob.ListOptions{Prefix: prefix, Delimiter: delimiter})
	if err != nil {
		return remote.Page{}, b.mark(ctx, "list", prefix, err)
	}
	page := remote.Page{Objects: make([]remote.Object, 0, len(list))}
	for _, o := range list {
		page.Objects = append(page.Objects, remote.Object{Key: o.Key, Size: o.Size, ETag: listedTag(o), Modified: o.ModTime,
			Folder: o.IsDir})
	}
	if len(next) > 0 {
		page.Next = next
	}
	return page, nil
}

// pageObjects is the number of names in a page of a listing: S3's maximum.
const pageObjects = 1000

// Copy asks the store to copy.
func (b *bucket) Copy(ctx context.Context, from, to string) error {
	if err := b.blob.Copy(ctx, to, from, nil); err != nil {
		return b.mark(ctx, "copy", from, err)
	}
	return nil
}

// Delete removes an object.
func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := b.blob.Delete(ctx, key); err != nil {
		return b.mark(ctx, "delete", key, err)
	}
	return nil
}

// NewWriter begins an upload. gocloud.dev sends large objects in parts.
func (b *bucket) NewWriter(ctx context.Context, key string, opts remote.WriteOptions) (remote.Writer, error) {
	kind := opts.ContentType
	if kind == "" {
		kind = "application/octet-stream"
	}
	ctx, cancel := context.WithCancel(ctx)
	w, err := b.blob.NewWriter(ctx, key, &blob.WriterOptions{ContentType: kind, IfNotExist: opts.IfNotExist,
		BufferSize: opts.PartBytes, MaxConcurrency: opts.Parts})
	if err != nil {
		cancel()
		return nil, b.mark(ctx, "write", key, err)
	}
	return &writer{blob: w, cancel: cancel, ctx: ctx, bucket: b, key: key}, nil
}

// writer is a blob.Writer. Canceling its context aborts the upload, so that no object appears.
type writer struct {
	blob   *blob.Writer
	ctx    context.Context
	cancel context.CancelFunc
	bucket *bucket
	key    string
	closed bool
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.blob.Write(p)
	if err != nil {
		err = w.bucket.mark(w.ctx, "write", w.key, err)
	}
	return n, err
}

// Commit completes the upload. The object appears with the answer of the store.
func (w *writer) Commit() error {
	if w.closed {
		return remote.NewError("write", w.bucket.object(w.key), remote.ErrInvalid, errors.New("the writer is closed"))
	}
	w.closed = true
	defer w.cancel()
	if err := w.blob.Close(); err != nil {
		return w.bucket.mark(w.ctx, "write", w.key, err)
	}
	return nil
}

// Close aborts the upload unless Commit was called.
func (w *writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	w.cancel()
	_ = w.blob.Close() // returns that the upload was canceled
	return nil
}

// object returns the name of an object for errors.
func (b *bucket) object(key string) string { return remote.NameOf(b, key) }

// mark turns an error of a driver into an Error with a sentinel, a shorter text and advice.
func (b *bucket) mark(ctx context.Context, op, key string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	kind := kindOf(op, err)
	why := cause(err)
	return remote.NewError(op, b.object(key), kind, shortened{why.Error() + b.used(kind), why})
}
