// Package membucket has a bucket in memory, for tests of all that reads or writes one.
package membucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/remote"
)

// Memory is a Bucket of this process. The zero value is empty and ready.
type Memory struct {
	Name  string           // what String returns; empty means mem://memory
	Pages int              // objects a page; 0 means 1000
	Now   func() time.Time // the clock of the store; nil means time.Now
	mu    sync.Mutex
	all   map[string]version
	made  int
}

type version struct {
	data     []byte
	etag     string
	modified time.Time
}

// String returns its name.
func (m *Memory) String() string {
	if m.Name != "" {
		return m.Name
	}
	return "mem://memory"
}

func (m *Memory) find(op, key string) (version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.all[key]
	if !ok {
		return v, remote.NewError(op, remote.NameOf(m, key), remote.ErrNotFound, nil)
	}
	return v, nil
}

// Put makes an object of data, which is the bucket's from then on.
func (m *Memory) Put(key string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putLocked(key, data)
}

func (m *Memory) putLocked(key string, data []byte) {
	if m.all == nil {
		m.all = make(map[string]version)
	}
	m.made++
	m.all[key] = version{data, fmt.Sprintf("%q", fmt.Sprint(m.made)), m.now()}
}

func (m *Memory) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// Stat returns size and version.
func (m *Memory) Stat(ctx context.Context, key string) (remote.Object, error) {
	v, err := m.find("stat", key)
	if err = errors.Join(ctx.Err(), err); err != nil {
		return remote.Object{}, err
	}
	return remote.Object{Key: key, Size: int64(len(v.data)), ETag: v.etag, Modified: v.modified}, nil
}

// ReadRange returns a part of an object.
func (m *Memory) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	v, err := m.find("read", key)
	switch size := int64(len(v.data)); {
	case ctx.Err() != nil:
		return remote.Body{}, ctx.Err()
	case err != nil:
		return remote.Body{}, err
	case etag != "" && etag != v.etag:
		return remote.Body{}, remote.NewError("read", remote.NameOf(m, key), remote.ErrChanged, nil)
	case off < 0 || off > size:
		return remote.Body{}, remote.NewError("read", remote.NameOf(m, key), remote.ErrInvalid,
			fmt.Errorf("byte %d of %d", off, size))
	case n < 0 || n > size-off:
		n = size - off
	}
	o := remote.Object{Key: key, Size: int64(len(v.data)), ETag: v.etag}
	return remote.Body{ReadCloser: io.NopCloser(bytes.NewReader(v.data[off : off+n])), Object: o}, nil
}

// ListPage returns the next objects after the token, which is the last name before.
func (m *Memory) ListPage(ctx context.Context, prefix, delimiter string, token []byte) (remote.Page, error) {
	if err := ctx.Err(); err != nil {
		return remote.Page{}, err
	}
	var page remote.Page
	for _, o := range m.named(prefix, delimiter) {
		if token != nil && o.Key <= string(token) {
			continue
		}
		if limit := max(1, m.Pages); len(page.Objects) == limit && m.Pages > 0 || len(page.Objects) == 1000 {
			page.Next = []byte(page.Objects[len(page.Objects)-1].Key)
			break
		}
		page.Objects = append(page.Objects, o)
	}
	return page, nil
}

// named returns all objects and folders of a listing, in order.
func (m *Memory) named(prefix, delimiter string) []remote.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []remote.Object
	for key, v := range m.all {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		if at := strings.Index(rest, delimiter); delimiter != "" && at >= 0 {
			list = append(list, remote.Object{Key: prefix + rest[:at+len(delimiter)], Folder: true})
			continue
		}
		list = append(list, remote.Object{Key: key, Size: int64(len(v.data)), ETag: v.etag, Modified: v.modified})
	}
	slices.SortFunc(list, func(a, b remote.Object) int { return strings.Compare(a.Key, b.Key) })
	return slices.CompactFunc(list, func(a, b remote.Object) bool { return a.Key == b.Key })
}

// Copy makes an object of another one's bytes.
func (m *Memory) Copy(ctx context.Context, from, to string) error {
	v, err := m.find("copy", from)
	if err = errors.Join(ctx.Err(), err); err != nil {
		return err
	}
	m.Put(to, v.data)
	return nil
}

// Delete removes an object.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if _, err := m.find("delete", key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
	return nil
}

// Close does nothing.
func (m *Memory) Close() error { return nil }

// NewWriter returns a writer whose Commit makes the object.
func (m *Memory) NewWriter(ctx context.Context, key string, opts remote.WriteOptions) (remote.Writer, error) {
	return &memoryWriter{ctx: ctx, bucket: m, key: key, opts: opts}, ctx.Err()
}

type memoryWriter struct {
	ctx    context.Context
	bucket *Memory
	key    string
	opts   remote.WriteOptions
	buf    bytes.Buffer
	closed bool
}

func (w *memoryWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.buf.Write(p)
}

func (w *memoryWriter) Commit() error {
	if w.closed {
		return remote.NewError("write", remote.NameOf(w.bucket, w.key), remote.ErrInvalid,
			errors.New("the writer is closed"))
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.closed = true
	w.bucket.mu.Lock()
	defer w.bucket.mu.Unlock()
	if _, ok := w.bucket.all[w.key]; ok && w.opts.IfNotExist {
		return remote.NewError("write", remote.NameOf(w.bucket, w.key), remote.ErrExists, nil)
	}
	w.bucket.putLocked(w.key, bytes.Clone(w.buf.Bytes()))
	return nil
}

func (w *memoryWriter) Close() error {
	w.closed = true
	return nil
}
