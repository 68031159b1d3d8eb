package stream

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Gzip fills dst from a stream of gzip, of one member or more, whose checksums and lengths it verifies.
func Gzip(dst, src []byte) error {
	f := flates.Get().(*flate)
	defer flates.Put(f)
	for {
		head := gzipHead(src)
		if head < 0 {
			return errors.New("no gzip stream")
		}
		n, rest, err := f.blocks(dst, src[head:])
		switch {
		case err != nil:
			return err
		case len(rest) < 8:
			return fmt.Errorf("after the last byte: %w", errCut)
		case binary.LittleEndian.Uint32(rest[4:]) != uint32(n):
			return ErrLength
		}
		if err := checksum(crc32.ChecksumIEEE(dst[:n]), binary.LittleEndian.Uint32(rest)); err != nil {
			return err
		}
		if dst, src = dst[n:], rest[8:]; len(src) == 0 {
			return exact(0, len(dst), nil)
		}
	}
}

// gzipHead returns the number of bytes before a member's blocks, -1 if there is no member.
func gzipHead(b []byte) int {
	const headCRC, extra, name, comment = 2, 4, 8, 16
	if len(b) < 10 || b[0] != 0x1f || b[1] != 0x8b || b[2] != 8 {
		return -1
	}
	flags, n := b[3], 10
	if flags&extra != 0 && len(b) >= n+2 {
		n += 2 + int(binary.LittleEndian.Uint16(b[n:]))
	}
	for _, text := range []byte{name, comment} {
		if flags&text != 0 {
			n = min(n, len(b))
			n += bytes.IndexByte(b[n:], 0) + 1
		}
	}
	if flags&headCRC != 0 {
		n += 2
	}
	if n > len(b) {
		return -1
	}
	return n
}

// Bzip2 fills dst from a stream of bzip2, whose checksum it verifies.
func Bzip2(dst, src []byte) error { return fill(dst, bzip2.NewReader(bytes.NewReader(src))) }

// Bzip2UpTo decodes a stream of bzip2 to the beginning of dst, which it returns.
func Bzip2UpTo(dst, src []byte) ([]byte, error) {
	n, err := fillUpTo(dst, bzip2.NewReader(bytes.NewReader(src)))
	return dst[:n], err
}

// fill fills dst from a stream.
func fill(dst []byte, r io.Reader) error {
	n, err := fillUpTo(dst, r)
	return exact(n, len(dst), err)
}

// fillUpTo reads a stream of at most len(dst) bytes and returns their number. It reads one byte more, because only at
// its end does the stream compare its checksum.
func fillUpTo(dst []byte, r io.Reader) (n int, err error) {
	for err == nil && n < len(dst) {
		var k int
		k, err = r.Read(dst[n:])
		n += k
	}
	if err == nil {
		if _, err = io.ReadFull(r, make([]byte, 1)); err == nil {
			err = ErrLength
		}
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}
