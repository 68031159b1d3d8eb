package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock/penstock/internal/vfs"
)

// OpenStream opens a file and decompresses it if it begins with the magic number of gzip, zlib, zstd or bzip2.
// Names are not considered, as people rename files. After the end of ctx, Read returns the cause of ctx.
func OpenStream(ctx context.Context, root *vfs.Root, path string) (*Stream, error) {
	f, err := OpenUntil(ctx, root, path)
	if err != nil {
		return nil, err
	}
	s := &Stream{ctx: ctx, file: f}
	if err := s.start(); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

// Stream reads the decompressed content of a file.
type Stream struct {
	ctx  context.Context
	file vfs.File
	in   int64 // compressed bytes taken from the file
	out  int64 // decompressed bytes returned by Read
	r    io.Reader
	stop func()

	plain bool // the file is not compressed
}

// Limits against decompression bombs. maxRatio is the most bytes that one compressed byte may expand to: deflate
// reaches 1032 and zstd more, but samples worth keeping do not come near. The first maxFree bytes are exempt, so
// that a small file of zeros is read.
const (
	maxRatio = 1000
	maxFree  = 64 << 20
)

var errBomb = errors.New("decompresses without end: each byte expands to more than 1000; this looks like a " +
	"decompression bomb")

// CheckRatio returns an error if out decompressed bytes are too many for in compressed bytes.
func CheckRatio(in, out int64) error {
	if out > maxFree && out/maxRatio > in {
		return errBomb
	}
	return nil
}

// start chooses the decompressor by the first bytes of the file. The window of zstd is limited, as the header of a
// frame can ask for gigabytes of memory. xz and lz4 are recognized only to say how to decompress them: neither is
// read here.
func (s *Stream) start() error {
	counted := bufio.NewReaderSize(counter{s.file, &s.in}, 256<<10)
	head, err := counted.Peek(6)
	if err != nil && err != io.EOF {
		return err
	}
	s.stop = func() {}
	switch {
	case len(head) > 1 && head[0] == 0x1f && head[1] == 0x8b:
		s.r, err = gzip.NewReader(counted)
		return err
	case isZlib(head):
		s.r, err = zlib.NewReader(counted)
		return err
	case bytes.HasPrefix(head, []byte("BZh")):
		s.r = bzip2.NewReader(counted)
		return nil
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return errors.New("is compressed with xz; decompress it first: xz -d FILE")
	case bytes.HasPrefix(head, []byte("\x04\x22\x4d\x18")):
		return errors.New("is compressed with lz4; decompress it first: lz4 -d FILE")
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(counted, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return err
		}
		s.r, s.stop = z, z.Close
		return nil
	}
	s.r, s.plain = counted, true
	return nil
}

// Seekable returns the content as an io.Seeker if the file is not compressed, so that archive/tar skips members
// without reading their data. Otherwise it returns the Stream itself. The result replaces reads from the Stream.
func (s *Stream) Seekable() io.Reader {
	if s.plain {
		if _, err := s.file.Seek(0, io.SeekStart); err == nil {
			return &skipper{s.file, bufio.NewReaderSize(s.file, 64<<10)}
		}
	}
	return s
}

// skipper reads a file through a buffer, and skips by seeking in the file.
type skipper struct {
	file vfs.File
	buf  *bufio.Reader
}

// Read implements io.Reader.
func (s *skipper) Read(p []byte) (int, error) { return s.buf.Read(p) }

// Seek implements io.Seeker as far as archive/tar needs it: forward from the current position, and a Seek by 0
// that returns the position. The file's position is ahead of the reader's by the buffered bytes.
func (s *skipper) Seek(offset int64, whence int) (int64, error) {
	at, err := s.file.Seek(0, io.SeekCurrent)
	if err != nil || whence != io.SeekCurrent {
		return 0, errors.ErrUnsupported
	}
	at -= int64(s.buf.Buffered())
	if offset <= int64(s.buf.Buffered()) {
		n, err := s.buf.Discard(int(offset))
		return at + int64(n), err
	}
	at, err = s.file.Seek(at+offset, io.SeekStart)
	s.buf.Reset(s.file)
	return at, err
}

// Read implements io.Reader. It reads at most untilStep bytes at a time, so that the end of ctx is noticed, and
// compares the ratio after each read, so that a bomb is stopped after the first large expansion.
func (s *Stream) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	n, err := s.r.Read(p[:min(len(p), untilStep)])
	s.out += int64(n)
	if err := CheckRatio(s.in, s.out); err != nil {
		return n, err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the compressed data is cut short: %w", err)
	}
	return n, err
}

// Close implements io.Closer.
func (s *Stream) Close() error {
	s.stop()
	return s.file.Close()
}

// ReadBytes reads n bytes. If there are fewer, it returns those bytes and the error short. n comes from a file and
// may be wrong, so memory grows with the bytes that arrive and is not allocated for n.
func ReadBytes(r io.Reader, n int64, short error) ([]byte, error) {
	b := make([]byte, 0, min(n, 1<<20))
	for int64(len(b)) < n {
		b = slices.Grow(b, 1)
		got, err := io.ReadFull(r, b[len(b):min(int64(cap(b)), n)])
		if b = b[:len(b)+got]; err == io.EOF || err == io.ErrUnexpectedEOF {
			return b, short
		} else if err != nil {
			return b, err
		}
	}
	return b, nil
}

// SkipBytes discards n bytes. If there are fewer, it returns the error short.
func SkipBytes(r io.Reader, n int64, short error) error {
	got, err := io.CopyN(io.Discard, r, n)
	if err == io.EOF && got < n {
		return short
	}
	return err
}

// counter adds the number of bytes read from r to *n.
type counter struct {
	r io.Reader
	n *int64
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}
