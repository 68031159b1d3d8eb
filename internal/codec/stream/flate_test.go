package stream

import (
	"bytes"
	stdzlib "compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zlib"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

// texts returns data of several kinds.
func texts() map[string][]byte {
	rng := rand.New(rand.NewPCG(4, 4))
	noise, few, runs, far := make([]byte, 200_000), make([]byte, 200_000), make([]byte, 200_000), make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
		few[i] = "abc"[rng.IntN(3)]
		runs[i] = byte(i / (1 + i/1000))
		far[i] = noise[i%33000]
	}
	skewed := make([]byte, 200_000) // long codes
	for i := range skewed {
		skewed[i] = byte(rng.ExpFloat64() * 12)
	}
	return map[string][]byte{
		"empty": nil, "one": {7}, "noise": noise, "few": few, "runs": runs, "far": far, "skewed": skewed,
		"zeros": make([]byte, 300_000), "image": h5test.Values(1, 150_528), "measured": measured(50_000), "small": []byte("hello, hello, hello"),
	}
}

// measured returns float32 values that change slowly, with noise.
func measured(n int) []byte {
	var b []byte
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range n {
		v := 100 + float32(math.Sin(float64(i)/300)) + rng.Float32()/16
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Streams of other encoders, of every level and strategy, come out as they went in.
func TestFlate(t *testing.T) {
	var f flate
	for name, want := range texts() {
		for level := stdzlib.HuffmanOnly; level <= 9; level++ {
			for kind, z := range map[string][]byte{"std": deflateStd(t, want, level), "klauspost": deflateKlauspost(t, want, level)} {
				got := make([]byte, len(want))
				if err := f.Inflate(got, z); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%s by %s, level %d: %v", name, kind, level, err)
				}
			}
		}
	}
}

func deflateStd(t testing.TB, b []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := stdzlib.NewWriterLevel(&out, level)
	require.NoError(t, err)
	return finish(t, w, &out, b)
}

func deflateKlauspost(t testing.TB, b []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zlib.NewWriterLevel(&out, level)
	require.NoError(t, err)
	return finish(t, w, &out, b)
}

func finish(t testing.TB, w io.WriteCloser, out *bytes.Buffer, b []byte) []byte {
	t.Helper()
	half := len(b) / 2
	_, err := w.Write(b[:half])
	_, err2 := w.Write(b[half:])
	require.NoError(t, errors.Join(err, err2, w.Close()))
	return out.Bytes()
}

// Headers, checksums, cuts and sizes that are wrong are errors.
func TestFlateRefuses(t *testing.T) {
	var f flate
	want := h5test.Values(2, 5000)
	good := deflateStd(t, want, 6)
	dst := make([]byte, len(want))
	for cut := range good {
		if err := f.Inflate(dst, good[:cut:cut]); err == nil {
			t.Fatalf("cut at byte %d of %d: %v", cut, len(good), err)
		}
	}
	for _, n := range []int{0, 1, 4000, 4999, 5001, 9000} {
		if err := f.Inflate(make([]byte, n), good); err == nil {
			t.Errorf("%d bytes for %d: %v", n, len(want), err)
		}
	}
	for name, z := range map[string]string{
		"no header":        "\x00\x00",
		"not deflate":      "\x79\x9c\x03\x00\x00\x00\x00\x01",
		"with dictionary":  "\x78\xbb\x03\x00\x00\x00\x00\x01",
		"window too large": "\x88\x1c\x03\x00\x00\x00\x00\x01",
		"block of type 3":  "\x78\x9c\x07\x00\x00\x00\x00\x01",
		"stored lengths":   "\x78\x9c\x01\x01\x00\x00\x00a\x00\x62\x00\x62",
		"checksum":         "\x78\x9c\x03\x00\x00\x00\x00\x02",
		"distance":         "\x78\x9c\x03\x02\x00\x00\x00\x00\x01",
	} {
		if err := f.Inflate(nil, []byte(z)); err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.Inflate(nil, []byte("\x78\x9c\x03\x00\x00\x00\x00\x01")); err != nil {
		t.Errorf("empty stream: %v", err)
	}
}

// Corrupt streams must be accepted or refused as by compress/zlib, with the same bytes.
func TestFlateCorrupt(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for name, want := range texts() {
		want = want[:min(len(want), 3000)]
		for level := -2; level <= 9; level += 3 {
			good := deflateStd(t, want, level)
			for range 300 {
				bad := bytes.Clone(good)
				for range 1 + rng.IntN(3) {
					bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
				}
				sameAsStd(t, name, bad, len(want))
			}
		}
	}
}

// sameAsStd ignores checksums, which corruption would hardly ever leave right.
func sameAsStd(t testing.TB, name string, stream []byte, size int) {
	t.Helper()
	var f flate
	got := make([]byte, size)
	err := f.Inflate(got, stream)
	r, stdErr := stdzlib.NewReader(bytes.NewReader(stream))
	want := make([]byte, size+1)
	n := 0
	if stdErr == nil {
		n, stdErr = io.ReadFull(r, want)
	}
	// ReadFull of one byte too many ends with ErrUnexpectedEOF, or EOF for nothing at all,
	// if all is well.
	good := r != nil && n == size && (errors.Is(stdErr, io.ErrUnexpectedEOF) || errors.Is(stdErr, io.EOF))
	if good && stdErr == io.ErrUnexpectedEOF {
		_, again := r.Read(want[size:])
		good = again == io.EOF
	}
	if (err == nil) != good {
		t.Fatalf("%s: %x: error %v, compress/zlib says %v after %d of %d bytes", name, stream, err, stdErr, n, size)
	}
	if good && !bytes.Equal(got, want[:size]) {
		t.Fatalf("%s: other bytes than compress/zlib", name)
	}
}

// FuzzFlate compares with compress/zlib. It fuzzes the stream between header and
// checksum, and makes the checksum fit the output.
func FuzzFlate(f *testing.F) {
	for _, b := range texts() {
		b = b[:min(len(b), 2000)]
		f.Add(deflateStd(f, b, 6), uint16(len(b)))
		f.Add(deflateStd(f, b, stdzlib.HuffmanOnly), uint16(len(b)))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) { sameAsStd(t, "fuzz", stream, int(size)) })
}

func BenchmarkInflate(b *testing.B) {
	for name, data := range map[string][]byte{"image": h5test.Values(1, 150_528), "measured": measured(50_000), "record784": h5test.Values(2, 784)} {
		z := deflateStd(b, data, 4)
		dst := make([]byte, len(data))
		b.Run(name, func(b *testing.B) {
			var f Inflater
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, f.Inflate(dst, z))
			}
		})
		b.Run(name+"/klauspost", func(b *testing.B) {
			src := bytes.NewReader(z)
			r, err := zlib.NewReader(src)
			require.NoError(b, err)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				src.Reset(z)
				require.NoError(b, r.(zlib.Resetter).Reset(src, nil))
				if _, err := io.ReadFull(r, dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
