package arrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// span is a range of bytes in the file.
type span struct{ at, size int64 }

// codec is the compression of the buffers of a batch, as numbered in Message.fbs.
type codec int8

const noCodec, lz4Codec, zstdCodec codec = -1, 0, 1

// batch is the places of the buffers of some rows. It holds no values.
type batch struct {
	file         *file
	rows         int64
	size         int64 // bytes of the body
	codec        codec
	arrays       []*array
	count        int                   // number of arrays, including children
	dictionaries map[int64]*dictionary // the dictionaries as they were before this batch in the stream
}

// array is the values of a node in a batch.
type array struct {
	*node
	id       int // index of the array in loaded.contents
	length   int64
	nulls    int64
	buffers  []span // the first is the validity bitmap, except for layouts that are not read
	children []*array
}

// bufferWalk goes through the nodes and buffers of a RecordBatch. Both lists are flat, in depth-first order of the
// schema.
type bufferWalk struct {
	t              *table
	body           span
	nodes, buffers int     // positions in the metadata
	left, more     int     // number of nodes and of buffers after these positions
	variadic       []int64 // number of data buffers of each array of views that is to come
	count          int     // number of arrays so far
}

// newBatch returns the places of a RecordBatch. The number of rows is limited by the bytes of the body, as each row
// takes at least a bit (more after compression): a claim of 2^60 rows in a small file would otherwise keep the
// program busy for years. Only columns of nulls have rows without bytes.
func newBatch(f *file, nodes []*node, t *table, body span) (*batch, error) {
	b := &batch{file: f, rows: t.number(0, 8, 0), size: body.size, codec: noCodec}
	most := 8 * body.size
	if c := t.table(3); c != nil {
		// The only compression method of Arrow is by buffer; c.number(1) would say so.
		if b.codec = codec(c.number(0, 1, 0)); b.codec != lz4Codec && b.codec != zstdCodec {
			return nil, fmt.Errorf("compressed by method %d, which is not known", b.codec)
		}
		most *= 1 << 15 // the ratio of zstd for zeros
	}
	// A batch of null columns only may have any number of rows in no bytes.
	empty := !slices.ContainsFunc(nodes, func(n *node) bool { return n.kind != others || n.width != 0 })
	if b.rows < 0 || b.rows > most && !empty {
		return nil, fmt.Errorf("%d rows in %d bytes: %w", b.rows, body.size, store.ErrCorrupt)
	}
	l := bufferWalk{t: t, body: body}
	l.nodes, l.left = t.vector(1, 16)
	l.buffers, l.more = t.vector(2, 16)
	if at, n := t.vector(4, 8); n > 0 {
		for i := range n {
			l.variadic = append(l.variadic, t.int64(at+8*i))
		}
	}
	for _, n := range nodes {
		a, err := l.array(n)
		if err == nil && a.length != b.rows {
			err = fmt.Errorf("column %s has %d rows in a batch of %d: %w", n.name, a.length, b.rows, store.ErrCorrupt)
		}
		if err != nil {
			return nil, err
		}
		b.arrays = append(b.arrays, a)
	}
	b.count = l.count
	return b, nil
}

// array returns the array of a node, from the next entries in the lists of nodes and buffers. How many buffers it
// has follows from the layout of the node.
//
// The buffers of a layout, in the order of the file, and where the values are:
//
//	fixed, bits, decimal   validity, values
//	dictionary indices     validity, values: indices into the dictionary's batches
//	binaries               validity, offsets, bytes
//	views                  validity, views, and as many buffers of bytes as variadic says
//	lists                  validity, offsets; the elements are the child's
//	fixedList              validity; the elements are the child's (of inline ones, the second buffer)
//	structs                validity; the values are the children's
//	others                 as many as width says; none is read
func (l *bufferWalk) array(n *node) (*array, error) {
	if l.left--; l.left < 0 {
		return nil, fmt.Errorf("a batch without column %s: %w", n.name, store.ErrCorrupt)
	}
	a := &array{node: n, id: l.count, length: l.t.int64(l.nodes), nulls: l.t.int64(l.nodes + 8)}
	l.nodes += 16
	if l.count++; a.length < 0 {
		return nil, store.ErrCorrupt
	}
	buffers, children := 2, n.children
	switch {
	case n.dictionary >= 0:
		children = nil
	case n.kind == binaries:
		buffers = 3
	// These have only a validity bitmap; the values are in the children.
	case n.kind == structs, n.kind == fixedList && !n.inline:
		buffers = 1
	case n.kind == others:
		buffers = n.width
	case n.kind == views:
		if len(l.variadic) == 0 || l.variadic[0] < 0 || l.variadic[0] > int64(l.more) {
			return nil, store.ErrCorrupt
		}
		buffers += int(l.variadic[0])
		l.variadic = l.variadic[1:]
	}
	if n.inline {
		// The child has no entry in the metadata: its length follows from the width of the values.
		a.children, children = []*array{{node: n.children[0], id: l.count, length: a.length * int64(n.width)}}, nil
		l.count++
	}
	for range buffers {
		s := span{l.t.int64(l.buffers), l.t.int64(l.buffers + 8)}
		if l.more--; l.more < 0 || layout.Inside(s.at, s.size, l.body.size) != nil {
			return nil, fmt.Errorf("a buffer of column %s is not in the body of its batch: %w", n.name, store.ErrCorrupt)
		}
		l.buffers += 16
		s.at += l.body.at
		a.buffers = append(a.buffers, s)
	}
	if n.inline { // the array has no bytes but its child's
		a.children[0].buffers, a.buffers = []span{{}, a.buffers[1]}, a.buffers[:1]
	}
	for _, c := range children {
		child, err := l.array(c)
		if err != nil {
			return nil, err
		}
		a.children = append(a.children, child)
	}
	return a, nil
}

// loaded is a batch whose buffers are read on first use. Any number of goroutines may use it.
type loaded struct {
	*batch
	contents []content // by array.id
}

// content is the buffers of an array.
type content struct {
	once     sync.Once
	err      error
	validity []byte // bitmap, least significant bit first; nil if no value is null
	offsets  []byte // offsets of binaries and lists; the 16-byte views of views
	data     []blob
}

// blob is a buffer in memory, or with lazy its place in the file.
type blob struct {
	raw  []byte
	at   span
	lazy bool
}

// load returns the batch with nothing read yet.
func (b *batch) load() *loaded { return &loaded{b, make([]content, b.count)} }

// plausible reads the buffers of a compressed batch that claims more rows than its bytes have bits. If they are too
// small, the error comes once for the batch, and not for each of many rows.
func (l *loaded) plausible() error {
	if l.codec == noCodec || l.rows <= 8*l.size {
		return nil
	}
	for _, a := range l.arrays {
		if a.refused != nil {
			continue
		}
		if _, err := l.content(a); err != nil {
			return fmt.Errorf("column %s: %w", a.name, err)
		}
	}
	return nil
}

// content returns the buffers of an array, reading them on the first call. Their sizes fit the length of the array.
func (l *loaded) content(a *array) (*content, error) {
	c := &l.contents[a.id]
	c.once.Do(func() { c.err = l.read(a, c) })
	return c, c.err
}

// read loads the buffers of an array that each of its values needs: validity, offsets and numbers. The bytes of
// strings stay in the file if they are not compressed. The size that a buffer must have follows from the length of
// the array, which the file claims; buffer compares it with the bytes that are there.
func (l *loaded) read(a *array, c *content) (err error) {
	// Writers leave the bitmap out if there are no nulls.
	if a.nulls != 0 && a.buffers[0].size > 0 {
		if c.validity, err = l.buffer(a.buffers[0], (a.length+7)/8); err != nil {
			return err
		}
	}
	n, width := a.node, int64(0)
	if n.dictionary >= 0 {
		n = n.index
	}
	switch n.kind {
	case fixed, decimal:
		width = int64(n.width)
	case views:
		if c.offsets, err = l.buffer(a.buffers[1], a.length*16); err != nil {
			return err
		}
		return l.blobs(a.buffers[2:], c)
	case binaries, lists:
		// An empty array may have no offsets, where n values need n+1.
		if a.length > 0 {
			if c.offsets, err = l.buffer(a.buffers[1], (a.length+1)*int64(n.width)); err != nil {
				return err
			}
		}
		return l.blobs(a.buffers[2:], c)
	case bits:
		raw, err := l.buffer(a.buffers[1], (a.length+7)/8)
		c.data = []blob{{raw: raw}}
		return err
	default:
		return nil
	}
	if a.length > (1<<62)/width {
		return store.ErrCorrupt
	}
	raw, err := l.buffer(a.buffers[1], a.length*width)
	c.data = []blob{{raw: raw}}
	return err
}

// blobs appends data buffers to c. Compressed buffers are decompressed now; other buffers stay in the file.
func (l *loaded) blobs(spans []span, c *content) error {
	for _, s := range spans {
		b := blob{at: s, lazy: l.codec == noCodec}
		if !b.lazy {
			var err error
			if b.raw, err = l.buffer(s, 0); err != nil {
				return err
			}
			b.at.size = int64(len(b.raw))
		}
		c.data = append(c.data, b)
	}
	return nil
}

// bytes returns n bytes of a blob. Bytes from the file are appended to buf, whose memory the result shares.
func (l *loaded) bytes(b *blob, at, n int64, buf *[]byte) ([]byte, error) {
	// Offsets of values come from the file. Each offset is checked against its buffer when it is used; offsets that
	// are not used are not checked.
	if layout.Inside(at, n, b.at.size) != nil {
		return nil, errExtent
	}
	if !b.lazy {
		return b.raw[at : at+n : at+n], nil
	}
	if n > source.MaxValue {
		return nil, fmt.Errorf("a value of %d bytes; at most %d are possible", n, source.MaxValue)
	}
	begin := len(*buf)
	*buf = append(*buf, make([]byte, n)...)
	value := (*buf)[begin:]
	return value, source.WithoutPath(source.ReadAt(l.file.file, value, b.at.at+at))
}

var errExtent = source.ValueError("a value is not inside of its column: %w", store.ErrCorrupt)

// buffer reads a buffer, which must have at least least bytes after decompression.
func (l *loaded) buffer(s span, least int64) ([]byte, error) {
	if s.size == 0 && least == 0 {
		return nil, nil
	}
	if l.codec == noCodec {
		// More bytes than needed are padding, which Arrow aligns to 8 or 64 bytes.
		if s.size < least {
			return nil, errSmall
		}
		if least > 0 {
			s.size = least
		}
	}
	b := make([]byte, s.size)
	if err := source.ReadAt(l.file.file, b, s.at); err != nil {
		return nil, source.WithoutPath(err)
	}
	if l.codec != noCodec {
		var err error
		if b, err = inflate(b, l.codec); err != nil {
			return nil, err
		}
	}
	if int64(len(b)) < least {
		return nil, errSmall
	}
	return b, nil
}

var errSmall = fmt.Errorf("a buffer is too small for its rows: %w", store.ErrCorrupt)

// inflate decompresses a buffer: a little-endian int64 with its size, or -1 if this buffer is not compressed, and
// the data. The size is limited, and memory grows with the data that arrives.
func inflate(b []byte, c codec) ([]byte, error) {
	if len(b) < 8 {
		return nil, errSmall
	}
	size := int64(binary.LittleEndian.Uint64(b))
	if b = b[8:]; size == -1 {
		return b, nil
	}
	if size < 0 || size > source.MaxValue {
		return nil, fmt.Errorf("a buffer of %d bytes; at most %d are possible", size, source.MaxValue)
	}
	r := &reader{b: b}
	var from io.Reader
	if c == lz4Codec {
		from = lz4.NewReader(r)
	} else {
		z, _ := decoders.Get().(*zstd.Decoder)
		if z == nil {
			var err error
			if z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(128<<20)); err != nil {
				return nil, err
			}
		}
		defer decoders.Put(z)
		if err := z.Reset(r); err != nil {
			return nil, err
		}
		from = z
	}
	// One byte more than announced is read, to notice a buffer that is longer.
	out, err := io.ReadAll(io.LimitReader(from, size+1))
	if err == nil && int64(len(out)) != size {
		err = errors.New("a compressed buffer has another size than it says")
	}
	return out, err
}

// decoders holds idle zstd decoders, which are expensive to make.
var decoders sync.Pool

// reader is bytes.Reader with no method but Read: a decoder that finds more methods keeps the input, which may be
// large, as long as the decoder is idle in the pool.
type reader struct{ b []byte }

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}
