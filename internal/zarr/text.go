package zarr

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
)

// vlenTexts is the codec that turns texts into bytes: the number of texts, and of each its length and its bytes, with
// numbers of 32 bits. See https://numcodecs.readthedocs.io/en/stable/other/vlen.html.
const vlenTexts = "vlen-utf8"

// IsText reports whether the elements are texts of any length, along one axis. Only Texts reads them: they have no
// fixed size, so Err is set for other readers.
func (a *Array) IsText() bool { return a.text }

// settleText sets Err on an array of texts, for readers of numbers.
func (a *Array) settleText(dtype, fill json.RawMessage) error {
	if a.Err != nil || !a.number.isText() {
		return a.Err
	}
	a.text = len(a.Shape) == 1
	var text string
	_ = json.Unmarshal(fill, &text) // null or 0 stands for the empty text
	a.fill = []byte(text)
	return unsupported("data type %s", brief(dtype))
}

// Texts returns the elements of a chunk of an array of texts, by the number of the chunk.
func (a *Array) Texts(ctx context.Context, chunk int64) ([][]byte, error) {
	var buf []byte
	stored, err := chunks{a}.Load(ctx, chunk, &buf)
	count := int(min(a.Chunks[0], a.Shape[0]-chunk*a.Chunks[0]))
	var list [][]byte
	switch {
	case err != nil:
		return nil, err
	case stored == nil: // never written
		for range count {
			list = append(list, a.fill)
		}
		return list, nil
	}
	if stored, err = a.coding.decodeAny(stored); err == nil {
		list, err = texts(stored, count)
	}
	if err != nil {
		return nil, corrupt("%s: %v", chunks{a}.Name(chunk), err)
	}
	return list, nil
}

// texts returns the first count texts of a chunk. The last chunk has more texts than the array.
func texts(b []byte, count int) (list [][]byte, err error) {
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) < uint64(count) {
		return nil, corrupt("fewer than %d texts", count)
	}
	for b = b[4:]; len(list) < count; {
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, corrupt("text %d is cut off", len(list))
		}
		end := 4 + int(binary.LittleEndian.Uint32(b))
		list = append(list, b[4:end:end])
		b = b[end:]
	}
	return list, nil
}

// decodeAny makes a chunk of any size of stored bytes. Compressed bytes must say how many bytes they stand for, as the
// size of texts does not follow from the metadata.
func (p *pipeline) decodeAny(src []byte) ([]byte, error) {
	for i := len(p.steps) - 1; i >= 0; i-- {
		s := &p.steps[i]
		n := len(src) - s.extra
		if s.most > 0 {
			if s.size == nil {
				return nil, unsupported("texts in chunks of %s", s.name)
			}
			var err error
			if n, err = s.size(src); err != nil {
				return nil, corrupt("%s: %v", s.name, err)
			}
		}
		if n < 0 || n > math.MaxInt32 || s.most > 0 && n/s.most > len(src)+64 {
			return nil, corrupt("%s: %d bytes of %d", s.name, n, len(src))
		}
		out := make([]byte, n)
		if err := s.decode(out, src); err != nil {
			return nil, corrupt("%s: %v", s.name, err)
		}
		src = out
	}
	return src, nil
}

// wordAtStart and wordAtEnd return the size that LZ4 and gzip note in front and at the end.
func wordAtStart(src []byte) (int, error) {
	if len(src) < 4 {
		return 0, corrupt("%d bytes", len(src))
	}
	return int(binary.LittleEndian.Uint32(src)), nil
}

func wordAtEnd(src []byte) (int, error) { return wordAtStart(src[max(0, len(src)-4):]) }
