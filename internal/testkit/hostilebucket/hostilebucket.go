// Package hostilebucket is, for tests, a bucket that answers other than it was asked.
package hostilebucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync/atomic"

	"github.com/penstock/penstock/remote"
)

// Attack is a way to answer wrongly. Functions that are nil answer as the wrapped bucket does.
type Attack struct {
	Name string
	Stat func(n int64, o remote.Object) remote.Object // n counts the calls
	Read func(ctx context.Context, n int64, b remote.Body, data []byte) remote.Body
	List func(n int64, prefix string, p remote.Page) remote.Page
}

// Bucket answers as its Attack does.
type Bucket struct {
	remote.Bucket
	Attack Attack
	Spare  string // keys that end so are read as they are; empty is none
	calls  atomic.Int64
}

// Stat implements remote.Bucket.
func (b *Bucket) Stat(ctx context.Context, key string) (remote.Object, error) {
	o, err := b.Bucket.Stat(ctx, key)
	if err == nil && b.Attack.Stat != nil {
		o = b.Attack.Stat(b.calls.Add(1), o)
	}
	return o, err
}

// ReadRange implements remote.Bucket.
func (b *Bucket) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	if b.Attack.Read == nil || b.Spare != "" && strings.HasSuffix(key, b.Spare) {
		return b.Bucket.ReadRange(ctx, key, off, n, etag)
	}
	body, err := b.Bucket.ReadRange(ctx, key, off, n, "") // whatever version is asked for
	if err != nil {
		return body, err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return body, err
	}
	return b.Attack.Read(ctx, b.calls.Add(1), body, data), nil
}

// ListPage implements remote.Bucket.
func (b *Bucket) ListPage(ctx context.Context, prefix, delimiter string, token []byte) (remote.Page, error) {
	if b.Attack.List == nil {
		return b.Bucket.ListPage(ctx, prefix, delimiter, token)
	}
	n := b.calls.Add(1)
	p, err := b.Bucket.ListPage(ctx, prefix, delimiter, nil)
	if err == nil {
		p = b.Attack.List(n, prefix, p)
	}
	return p, err
}

// Close leaves the wrapped bucket open.
func (*Bucket) Close() error { return nil }

func body(b remote.Body, r io.Reader) remote.Body {
	return remote.Body{ReadCloser: io.NopCloser(r), Object: b.Object}
}

// endless gives the same bytes again and again.
type endless struct{ data []byte }

func (e endless) Read(p []byte) (int, error) { return copy(p, e.data), nil }

// silent gives nothing until its context ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// Names that lead out of a folder, or are none.
var Names = []string{
	"../outside.png", "../../outside.png", "a/../../outside.png", "/outside.png", "/etc/passwd",
	"cat/../../../outside.png", "..", ".", "./x.png",
	"cat//x.png", "cat/x\x00.png", "\x00", "cat/\xff\xfe.png", "cat/x\n.png", "cat/\x1b]0;owned\a.png",
	`cat\..\..\outside.png`, "C:/outside.png", "CON",
	"cat/" + strings.Repeat("x", 1<<20) + ".png", strings.Repeat("d/", 5000) + "x.png", "", "/", "//",
}

// Reads are attacks on what is read.
var Reads = []Attack{
	{Name: "empty body", Read: func(_ context.Context, _ int64, b remote.Body, _ []byte) remote.Body {
		return body(b, strings.NewReader(""))
	}},
	{Name: "half a body", Read: func(_ context.Context, _ int64, b remote.Body, data []byte) remote.Body {
		return body(b, bytes.NewReader(data[:len(data)/2]))
	}},
	{Name: "a byte at a time, then nothing", Read: func(_ context.Context, n int64, b remote.Body,
		data []byte) remote.Body {
		return body(b, bytes.NewReader(data[:min(1, len(data))]))
	}},
	{Name: "endless body", Read: func(_ context.Context, _ int64, b remote.Body, data []byte) remote.Body {
		return body(b, io.MultiReader(bytes.NewReader(data), endless{bytes.Repeat([]byte("\x89PNG"), 1<<14)}))
	}},
	{Name: "endless body of unknown size", Read: func(_ context.Context, _ int64, b remote.Body, data []byte) remote.Body {
		b.Object.Size = -1
		return body(b, io.MultiReader(bytes.NewReader(data), endless{bytes.Repeat([]byte("\x89PNG"), 1<<14)}))
	}},
	{Name: "silent body", Read: func(ctx context.Context, _ int64, b remote.Body, _ []byte) remote.Body {
		return body(b, silent{ctx})
	}},
	{Name: "body that breaks", Read: func(_ context.Context, _ int64, b remote.Body, data []byte) remote.Body {
		return body(b, io.MultiReader(bytes.NewReader(data[:len(data)/2]), broken{}))
	}},
	{Name: "another range", Read: func(_ context.Context, _ int64, b remote.Body, data []byte) remote.Body {
		moved := append(bytes.Clone(data[min(1, len(data)):]), 0)
		return body(b, bytes.NewReader(moved))
	}},
	{Name: "zeros", Read: func(_ context.Context, _ int64, b remote.Body, data []byte) remote.Body {
		return body(b, bytes.NewReader(make([]byte, len(data))))
	}},
	{Name: "nested text", Read: func(_ context.Context, _ int64, b remote.Body, data []byte) remote.Body {
		b.Object.Size = 1 << 20
		return body(b, strings.NewReader(strings.Repeat("[", 1<<20)))
	}},
	{Name: "another version each time", Read: func(_ context.Context, n int64, b remote.Body, data []byte) remote.Body {
		b.Object.ETag = fmt.Sprint(n)
		if n%2 == 0 && len(data) > 0 {
			data[len(data)/2] ^= 0x55
		}
		return body(b, bytes.NewReader(data))
	}},
	{Name: "size of 2^62", Read: sized(1 << 62), Stat: stated(1 << 62)},
	{Name: "size of 2^63-1", Read: sized(math.MaxInt64), Stat: stated(math.MaxInt64)},
	{Name: "size of -1", Read: sized(-1), Stat: stated(-1)},
	{Name: "size of -2^63", Read: sized(math.MinInt64), Stat: stated(math.MinInt64)},
	{Name: "size of 0", Read: sized(0), Stat: stated(0)},
	{Name: "another size each time", Stat: func(n int64, o remote.Object) remote.Object { o.Size += n; return o }},
	{Name: "another ETag each time", Stat: func(n int64, o remote.Object) remote.Object {
		o.ETag = fmt.Sprint(n)
		return o
	}},
	{Name: "ETag that is a path", Stat: func(_ int64, o remote.Object) remote.Object {
		o.ETag = "../../outside\x00"
		return o
	}},
	{Name: "another key", Stat: func(_ int64, o remote.Object) remote.Object { o.Key = "../../outside"; return o }},
}

func sized(n int64) func(context.Context, int64, remote.Body, []byte) remote.Body {
	return func(_ context.Context, _ int64, b remote.Body, data []byte) remote.Body {
		b.Object.Size = n
		return body(b, bytes.NewReader(data))
	}
}

func stated(n int64) func(int64, remote.Object) remote.Object {
	return func(_ int64, o remote.Object) remote.Object { o.Size = n; return o }
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// Lists are attacks on what is listed: one for each of Names, and others.
func Lists() []Attack {
	all := []Attack{
		{Name: "listing that repeats", List: func(_ int64, _ string, p remote.Page) remote.Page {
			p.Next = []byte("again")
			return p
		}},
		{Name: "listing that repeats with other tokens", List: func(n int64, _ string, p remote.Page) remote.Page {
			p.Next = fmt.Append(nil, n)
			return p
		}},
		{Name: "empty pages without end", List: func(n int64, _ string, _ remote.Page) remote.Page {
			return remote.Page{Next: fmt.Append(nil, n)}
		}},
		{Name: "each key twice", List: func(_ int64, _ string, p remote.Page) remote.Page {
			p.Objects = append(p.Objects, p.Objects...)
			p.Next = nil
			return p
		}},
		{Name: "keys of another prefix", List: func(_ int64, _ string, p remote.Page) remote.Page {
			return remote.Page{Objects: []remote.Object{{Key: "private/keep", Size: 1, ETag: "1"}}}
		}},
		{Name: "folders that are files", List: func(_ int64, _ string, p remote.Page) remote.Page {
			for i := range p.Objects {
				p.Objects[i].Folder = !p.Objects[i].Folder
			}
			return p
		}},
		{Name: "sizes of 2^62", List: func(_ int64, _ string, p remote.Page) remote.Page {
			for i := range p.Objects {
				p.Objects[i].Size = 1 << 62
			}
			return p
		}},
		{Name: "200,000 names", List: func(n int64, prefix string, _ remote.Page) (p remote.Page) {
			const page = 10_000
			for i := range int64(page) {
				p.Objects = append(p.Objects, remote.Object{Key: fmt.Sprintf("%s.%09d.txt", prefix, (n-1)*page+i), Size: 1,
					ETag: "1"})
			}
			if n%20 != 0 {
				p.Next = fmt.Append(nil, n)
			}
			return p
		}},
	}
	for _, name := range Names {
		all = append(all, Attack{Name: fmt.Sprintf("name %.40q", name),
			List: func(_ int64, prefix string, p remote.Page) remote.Page {
				p.Objects = append(p.Objects, remote.Object{Key: prefix + name, Size: 100, ETag: "1"},
					remote.Object{Key: prefix + name + "/", Folder: true})
				return p
			}})
	}
	return all
}
