package stream

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock/penstock/internal/testkit/require"
)

// decoders are those of this build: both, where there are two.
var decoders = func() map[string]func(dst, src []byte) ([]byte, error) {
	m := map[string]func(dst, src []byte) ([]byte, error){ZstdBackend: unzstd}
	m["Go"] = unzstdGo
	return m
}()

// compress returns a frame.
func compress(t testing.TB, b []byte, level int, options ...zstd.EOption) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil, append(options, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)))...)
	require.NoError(t, err)
	defer e.Close()
	return e.EncodeAll(b, nil)
}

// contents are data of several kinds.
func contents() [][]byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise, words, planes := make([]byte, 70_000), []byte(nil), make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	for len(words) < 200_000 {
		words = append(words, []string{"the ", "order ", "of ", "all ", "records "}[rnd.IntN(5)]...)
	}
	for i := range planes[:100_000] {
		planes[i] = byte(rnd.IntN(1 + i/5000))
	}
	return [][]byte{nil, {7}, []byte("zstd"), noise, words, planes, make([]byte, 1<<20)}
}

func TestZstd(t *testing.T) {
	for name, decode := range decoders {
		for i, want := range contents() {
			for _, level := range []int{1, 3, 9, 19} {
				for _, checksum := range []bool{false, true} {
					src := compress(t, want, level, zstd.WithEncoderCRC(checksum))
					for _, spare := range []int{0, 1, 1000} {
						got, err := decode(make([]byte, len(want)+spare), src)
						if err != nil || !bytes.Equal(got, want) {
							t.Errorf("%s, content %d, level %d, %d bytes more: %d bytes, error %v", name, i, level, spare, len(got), err)
						}
					}
					if len(want) == 0 {
						continue
					}
					if _, err := decode(make([]byte, len(want)-1), src); err == nil {
						t.Errorf("%s, content %d, level %d: fits into less than its data", name, i, level)
					}
				}
			}
		}
	}
}

// frame returns a frame of raw blocks with a window and, unless it is negative, a size of its content.
func frame(window byte, size int64, blocks ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xfd2fb528)
	if size < 0 {
		b = append(b, 0, window)
	} else {
		b = binary.LittleEndian.AppendUint64(append(b, 3<<6, window), uint64(size))
	}
	for i, x := range blocks {
		head := uint32(len(x)) << 3
		if i == len(blocks)-1 {
			head |= 1
		}
		b = append(append(b, byte(head), byte(head>>8), byte(head>>16)), x...)
	}
	return b
}

// zeros is a block of 128 KiB in four bytes, the last one of its frame or not.
func zeros(last byte) []byte {
	const head = 128<<10<<3 | 1<<1
	return []byte{last | head&0xff, head >> 8 & 0xff, head >> 16, 0}
}

// Frames that lie, or that nobody writes, are decoded alike by all decoders, in the memory of dst.
func TestHostileZstd(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 100)
	good := compress(t, data, 3, zstd.WithEncoderCRC(true))
	skipped := append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0}, "abc"...)
	flipped := slices.Clone(good)
	flipped[len(flipped)-1] ^= 1
	named := compress(t, data, 3, zstd.WithEncoderDictRaw(5, data))
	bomb := frame(56, -1)
	for range 10_000 {
		bomb = append(bomb, zeros(0)...)
	}
	bomb = append(bomb, zeros(1)...)
	for name, c := range map[string]struct {
		src  []byte
		want []byte // nil: an error
	}{
		"nothing":                     {nil, []byte{}},
		"raw":                         {frame(0, -1, data), data},
		"two blocks":                  {frame(0, 1000, data[:300], data[300:]), data},
		"two frames":                  {append(frame(0, -1, data[:300]), frame(0, 700, data[300:])...), data},
		"a frame of metadata first":   {append(slices.Clone(skipped), good...), data},
		"a frame of metadata after":   {append(slices.Clone(good), skipped...), data},
		"a window of 2 GiB":           {frame(21<<3, -1, data), data},
		"a window of 3.75 GiB":        {frame(21<<3|7, -1, data), data},
		"a window of 4 GiB":           {frame(22<<3, -1, data), nil},
		"a window of 3.75 TiB":        {frame(255, -1, data), nil},
		"a size that is too small":    {frame(0, 999, data), nil},
		"a size that is too large":    {frame(0, 1001, data), nil},
		"a size of 2^62":              {frame(0, 1<<62, data), nil},
		"a size of 2^63-1":            {frame(0, math.MaxInt64, data), nil},
		"another checksum":            {flipped, nil},
		"cut":                         {good[:len(good)-5], nil},
		"only a head":                 {good[:5], nil},
		"three bytes":                 {good[:3], nil},
		"a byte after":                {append(slices.Clone(good), 0), nil},
		"rubbish after":               {append(slices.Clone(good), "rubbish"...), nil},
		"rubbish":                     {data, nil},
		"an older frame":              {append([]byte{0x27, 0xb5, 0x2f, 0xfd}, good[4:]...), nil},
		"a dictionary that is needed": {named, nil},
		"1.3 GB of zeros":             {bomb, nil},
	} {
		for decoder, decode := range decoders {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := decode(make([]byte, 2000), c.src)
			runtime.ReadMemStats(&after)
			if (err != nil) != (c.want == nil) || err == nil && !bytes.Equal(got, c.want) {
				t.Errorf("%s by %s: %d bytes, error %v", name, decoder, len(got), err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
				t.Errorf("%s by %s: took %d bytes", name, decoder, n)
			}
		}
	}
}

// Whatever the bytes, decoders return the same data or an error. libzstd does not see all that Go sees: where the streams
// of Huffman codes of a block end.
func TestMutatedZstd(t *testing.T) {
	if ZstdBackend == "Go" {
		t.Skip("the only decoder of this build is in Go: go test -tags libzstd")
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	decoded := 0
	for _, want := range contents() {
		for _, level := range []int{1, 3, 19} {
			good := compress(t, want, level, zstd.WithEncoderCRC(false))
			for range 300 {
				src := slices.Clone(good)
				for range 1 + rnd.IntN(3) {
					src[rnd.IntN(min(len(src), 400))] = byte(rnd.Uint32())
				}
				b, err := unzstdGo(make([]byte, len(want)), src)
				got, errOther := unzstd(make([]byte, len(want)), src)
				if err == nil && (errOther != nil || !bytes.Equal(b, got)) {
					t.Fatalf("%s decodes %x... to %d other bytes, error %v", ZstdBackend, src[:min(len(src), 40)], len(got), errOther)
				}
				if err == nil {
					decoded++
				}
			}
		}
	}
	if decoded < 100 {
		t.Errorf("%d mutations were decoded", decoded)
	}
}
