package mds

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/rows"
)

// A shard is the number of samples as uint32, the offset of each sample and of the end as uint32, the JSON that is
// in the index, too, and the samples. All numbers are little endian. A sample is
//
//	the size as uint32 of each column of variable size, and the bytes of all columns
//
// A shard may be compressed as a whole, and is read from front to back.

// open returns the file of a shard. Compression that is not read here is an error before the first row.
func (h *shard) open(ctx context.Context, root *vfs.Root, path string) (rows.File, error) {
	if method, _, _ := strings.Cut(h.Method, ":"); h.Packed != nil && strings.HasSuffix(path, "."+method) &&
		(method == "br" || method == "snappy") {
		return nil, fmt.Errorf("is compressed with %s, which is not read; keep its raw file: StreamingDataset(..., "+
			"keep_zip=False) writes it where it is first read", method)
	}
	var list []rows.Column
	for i, e := range h.columns {
		c := e.Column
		c.Name = h.Names[i]
		list = append(list, c)
	}
	return &rows.Stream{Ctx: ctx, Root: root, Path: path, List: list, Samples: h.Samples, Read: h.samples}, nil
}

// samples yields the samples of a shard from number first on. Offsets are untrusted: each must be at least the
// offset before.
func (h *shard) samples(s *source.Stream, first int64, yield func(rows.Row, error) bool) error {
	r := s.Seekable()
	head, err := source.ReadBytes(r, 4, errShort)
	if err != nil {
		return err
	}
	if n := int64(binary.LittleEndian.Uint32(head)); n != h.Samples {
		return fmt.Errorf("the shard has %d samples, and by the index %d", n, h.Samples)
	}
	// ReadBytes takes memory as bytes arrive: the number of samples is a claim of the index.
	table, err := source.ReadBytes(r, 4*(h.Samples+1), errShort)
	if err != nil {
		return err
	}
	offset := func(i int64) int64 { return int64(binary.LittleEndian.Uint32(table[4*i:])) }
	at := int64(len(head) + len(table))
	// The first sample begins after the table and the JSON, which is skipped.
	if offset(first) < at {
		return errOffsets
	}
	if err := source.SkipBytes(r, offset(first)-at, errShort); err != nil {
		return err
	}
	for i := first; i < h.Samples; i++ {
		size := offset(i+1) - offset(i)
		if size < 0 || size > source.MaxValue {
			return errOffsets
		}
		b, err := source.ReadBytes(r, size, errShort)
		if err != nil {
			return err
		}
		if !yield(sample{h, b}, nil) {
			return nil
		}
	}
	// A compressed shard has its checksum after the last sample.
	switch n, err := io.Copy(io.Discard, r); {
	case err != nil:
		return err
	case n > 0:
		return fmt.Errorf("the shard has %d bytes after its last sample", n)
	}
	return nil
}

var (
	errOffsets = errors.New("the offsets of the samples do not rise")
	errShort   = errors.New("the shard is cut short")
)

// sample is the bytes of a sample in a shard.
type sample struct {
	shard *shard
	bytes []byte
}

// Each implements rows.Row.
func (s sample) Each(buf *[]byte, v rows.Visitor) error {
	// The sizes of all columns of variable size come before the first value.
	sizes := 0
	for _, size := range s.shard.Sizes {
		if size == nil {
			sizes += 4
		}
	}
	if sizes > len(s.bytes) {
		return errSample
	}
	head, rest := s.bytes[:sizes], s.bytes[sizes:]
	for i, size := range s.shard.Sizes {
		n := int64(0)
		if size != nil {
			n = *size
		} else {
			n, head = int64(binary.LittleEndian.Uint32(head)), head[4:]
		}
		if n > int64(len(rest)) {
			return errSample
		}
		value := rest[:n:n]
		rest = rest[n:]
		at := v.Column([]byte(s.shard.Names[i]))
		if at < 0 {
			continue
		}
		x, err := s.shard.columns[i].value(value, buf)
		if err != nil {
			return fmt.Errorf("%s: %w", s.shard.Names[i], err)
		}
		if err := v.Value(at, &x); err != nil {
			return err
		}
	}
	return nil
}

var errSample = source.ValueError("its columns have more bytes than it")
