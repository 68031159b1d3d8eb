package chunk

import (
	"fmt"

	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// unLZF fills dst from a stream of LibLZF, which is a row of:
//
//	000LLLLL, then L+1 bytes                    those bytes
//	LLLOOOOO, [if L = 7: M], OOOOOOOO           L+2 (+M) bytes from O+1 bytes back
func unLZF(dst, src []byte) error {
	at := 0
	for len(src) > 0 {
		control := int(src[0])
		src = src[1:]
		if control < 32 {
			n := control + 1
			if n > len(src) || n > len(dst)-at {
				return badLZF(at, "a run of %d bytes does not fit", n)
			}
			at += copy(dst[at:at+n], src)
			src = src[n:]
			continue
		}
		n, back, used, ok := copyLZF(control, src)
		if !ok || back > at || n > len(dst)-at {
			return badLZF(at, "a copy of %d bytes from %d back does not fit", n, back)
		}
		src = src[used:]
		stream.CopyBack(dst, at, back, n)
		at += n
	}
	if at != len(dst) {
		return badLZF(at, "the stream ends there, %d bytes are missing", len(dst)-at)
	}
	return nil
}

// copyLZF decodes the bytes after a control byte of 32 or more.
func copyLZF(control int, src []byte) (n, back, used int, ok bool) {
	n, used = control>>5+2, 1
	if n == 9 {
		used = 2
	}
	if len(src) < used {
		return n, 0, 0, false
	}
	if n == 9 {
		n += int(src[0])
	}
	return n, control&31<<8 + int(src[used-1]) + 1, used, true
}

func badLZF(at int, format string, args ...any) error {
	return fmt.Errorf("at byte %d of the chunk: %s: %w", at, fmt.Sprintf(format, args...), meta.ErrCorrupt)
}
