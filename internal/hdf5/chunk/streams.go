package chunk

import (
	"encoding/binary"

	"github.com/penstock/penstock/internal/codec/blosc"
	"github.com/penstock/penstock/internal/codec/stream"
)

// unzstd decodes zstd frames, of at most len(dst) bytes of data.
func unzstd(dst, src []byte) ([]byte, error) {
	b, err := stream.ZstdUpTo(dst, src)
	return b, corruptIf(err)
}

// unbzip2 decodes a bzip2 stream, of at most len(dst) bytes of data.
func unbzip2(dst, src []byte) ([]byte, error) {
	b, err := stream.Bzip2UpTo(dst, src)
	return b, corruptIf(err)
}

// unframeLZ4 undoes filter 32004, whose numbers are big endian:
//
//	bytes of the data (8), bytes of a block (4), and for each block
//	its stored bytes (4), and the block: as it is where these are all of its bytes
func unframeLZ4(dst, src []byte) ([]byte, error) {
	if len(src) < 12 {
		return nil, corrupt("%w", errCut)
	}
	size, block := binary.BigEndian.Uint64(src), int(binary.BigEndian.Uint32(src[8:]))
	if size > uint64(len(dst)) || block == 0 && size > 0 {
		return nil, corrupt("%d bytes in blocks of %d, where there can be %d", size, block, len(dst))
	}
	dst, src = dst[:size], src[12:]
	for at := 0; at < len(dst); {
		to := dst[at:min(at+block, len(dst))]
		stored, rest, err := be32(src)
		if err != nil || uint64(stored) > uint64(len(rest)) {
			return nil, corrupt("after %d of %d bytes: %w", at, len(dst), errCut)
		}
		from := rest[:stored]
		if len(from) == len(to) {
			copy(to, from)
		} else if err := stream.LZ4(to, from); err != nil {
			return nil, corrupt("%w", err)
		}
		at, src = at+len(to), rest[stored:]
	}
	return dst, nil
}

// unblosc decodes a chunk of blosc 1.
func unblosc(dst, src []byte) ([]byte, error) {
	n, err := blosc.Size(src)
	if err == nil && n > len(dst) {
		err = stream.ErrLength
	}
	if err != nil {
		return nil, corrupt("%w", err)
	}
	return dst[:n], corruptIf(blosc.Decode(dst[:n], src))
}

// unblosc2 decodes a frame of blosc 2.
func unblosc2(dst, src []byte) ([]byte, error) {
	b, err := blosc.DecodeFrame(dst, src)
	return b, corruptIf(err)
}
