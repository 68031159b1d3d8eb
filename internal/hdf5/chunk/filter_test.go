package chunk

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

func TestSwapBytes(t *testing.T) {
	b := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	for size, want := range map[int]string{0: "0102030405060708", 2: "0201040306050807", 4: "0403020108070605",
		8: "0807060504030201"} {
		got := bytes.Clone(b)
		filter.SwapBytes(got, size)
		if fmt.Sprintf("%x", got) != want {
			t.Errorf("elements of %d: %x, want %s", size, got, want)
		}
	}
}

// Complex numbers of libhdf5 2.0 are two numbers; the bytes of each are swapped.
func TestComplexNumbers(t *testing.T) {
	single := &meta.Datatype{Class: meta.Float, Size: 4, BigEndian: true}
	pair := &meta.Datatype{Class: meta.Complex, Size: 8, Base: single}
	if !plainBytes(pair, false) || swapped(pair) != 4 || pair.String() != "complex of "+single.String() {
		t.Errorf("%v: plain %v, numbers of %d bytes are swapped", pair, plainBytes(pair, false), swapped(pair))
	}
}

func TestCheckFletcher32(t *testing.T) {
	data := h5test.Values(1, 2001)
	sum := filter.Fletcher32(data)
	stored := append(bytes.Clone(data), byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	if got, err := checkFletcher32(stored); err != nil || !bytes.Equal(got, data) {
		t.Errorf("good checksum refused: %v", err)
	}
	old := append(bytes.Clone(data), byte(sum>>8), byte(sum), byte(sum>>24), byte(sum>>16))
	if _, err := checkFletcher32(old); err != nil {
		t.Errorf("checksum of libhdf5 1.6.2 refused: %v", err)
	}
	for i := range stored {
		stored[i] ^= 4
		if _, err := checkFletcher32(stored); !errors.Is(err, meta.ErrCorrupt) {
			t.Fatalf("corruption of byte %d: error %v", i, err)
		}
		stored[i] ^= 4
	}
	if _, err := checkFletcher32(stored[:3]); !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("3 bytes: error %v", err)
	}
}

func TestLZF(t *testing.T) {
	for _, tt := range []struct {
		src, want string
		ok        bool
	}{
		{"\x02abc", "abc", true},
		{"\x02abc\x20\x02", "abcabc", true},            // 3 bytes from 3 back
		{"\x00a\xe0\x05\x00", "aaaaaaaaaaaaaaa", true}, // 14 bytes from 1 back
		{"", "", true},
		{"\x02ab", "abc", false},       // the run is cut
		{"\x02abc", "abcd", false},     // too few
		{"\x02abc", "ab", false},       // too many
		{"\x20\x00", "aaa", false},     // copies what is not there yet
		{"\x00a\xe0\x05", "aa", false}, // no distance
		{"\x00a\x20\x00", "aa", false}, // copies too much
	} {
		dst := make([]byte, len(tt.want))
		err := unLZF(dst, []byte(tt.src))
		if tt.ok && (err != nil || string(dst) != tt.want) {
			t.Errorf("%q: %q, error %v, want %q", tt.src, dst, err, tt.want)
		}
		if !tt.ok && !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%q: error %v", tt.src, err)
		}
	}
}

func TestInflate(t *testing.T) {
	var f stream.Inflater
	for _, n := range []int{0, 1, 2, 300, 70000, 1 << 20} {
		want := h5test.Values(3, n)
		z := deflateStd(t, want, 6)
		dst := make([]byte, n)
		if err := corrupted(f.Inflate(dst, append(bytes.Clone(z), "rest"...))); err != nil || !bytes.Equal(dst, want) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		bad := bytes.Clone(z)
		bad[len(bad)-1] ^= 1
		if err := corrupted(f.Inflate(dst, bad)); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%d bytes: wrong checksum gives %v", n, err)
		}
		for _, cut := range []int{0, 1, 2, len(z) / 2, len(z) - 1} {
			if err := corrupted(f.Inflate(dst, z[:cut])); !errors.Is(err, meta.ErrCorrupt) {
				t.Errorf("%d bytes, stream cut at %d: %v", n, cut, err)
			}
		}
		if err := corrupted(f.Inflate(make([]byte, n+1), z)); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%d bytes: too few give %v", n, err)
		}
		if n > 0 {
			if err := corrupted(f.Inflate(make([]byte, n-1), z)); !errors.Is(err, meta.ErrCorrupt) {
				t.Errorf("%d bytes: too many give %v", n, err)
			}
		}
	}
}

// Impossible or oversized values are errors; h5py's files are in the other tests.
func TestScaleOffsetRefuses(t *testing.T) {
	good := []uint32{2, 0, 16, 0, 4, 1, 0, 0, 0, 0}
	s, err := newScaleOffset(good, 64)
	require.NoError(t, err)
	with := func(i int, x uint32) []uint32 {
		p := slices.Clone(good)
		p[i] = x
		return p
	}
	for _, tt := range []struct {
		params []uint32
		want   error
	}{
		{good[:9], meta.ErrCorrupt}, {with(soCount, 17), meta.ErrCorrupt}, {with(soSize, 3), meta.ErrCorrupt},
		{with(soKind, 0), meta.ErrUnsupported}, {with(soClass, 1), meta.ErrUnsupported}, {with(soClass, 2), meta.ErrUnsupported},
	} {
		if _, err := newScaleOffset(tt.params, 64); !errors.Is(err, tt.want) {
			t.Errorf("%v: error %v, want %v", tt.params, err, tt.want)
		}
	}
	dst := make([]byte, 64)
	if beyond, err := newScaleOffset(with(soFactor, 33), 64); err != nil ||
		!errors.Is(beyond.undo(dst, make([]byte, 100)), meta.ErrCorrupt) {
		t.Errorf("33 bits of 32: error %v, or a chunk that the filter made is undone", err)
	}
	head := make([]byte, scaleOffsetHead)
	for bits, room := range map[byte]int{3: 6, 32: 64} {
		head[0] = bits
		if err := s.undo(dst, append(bytes.Clone(head), make([]byte, room)...)); err != nil {
			t.Errorf("%d bits in %d bytes: %v", bits, room, err)
		}
		if err := s.undo(dst, append(bytes.Clone(head), make([]byte, room-1)...)); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%d bits in %d bytes: error %v", bits, room-1, err)
		}
	}
	head[0] = 33
	for _, src := range [][]byte{append(head, make([]byte, 66)...), head[:20]} {
		if err := s.undo(dst, src); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%d bytes: error %v", len(src), err)
		}
	}
	z := deflateStd(t, dst, 6)
	if b, err := inflateSome(make([]byte, 64), z); err != nil || len(b) != 64 {
		t.Errorf("%d bytes, error %v", len(b), err)
	}
	for i, src := range [][]byte{z[:len(z)-1], z[:1], append([]byte{1}, z...), z} {
		if _, err := inflateSome(make([]byte, 64-i/3), src); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("stream %d: error %v", i, err)
		}
	}
}

func BenchmarkScaleOffset(b *testing.B) {
	for _, size := range []uint32{1, 4, 8} {
		b.Run(fmt.Sprint(size, " bytes"), func(b *testing.B) {
			s, err := newScaleOffset([]uint32{2, 0, 1 << 16, 0, size, 1, 0, 0, 0, 0}, int(size)<<16)
			require.NoError(b, err)
			src := make([]byte, scaleOffsetHead+5<<13)
			src[0] = 5
			dst := make([]byte, size<<16)
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				require.NoError(b, s.undo(dst, src))
			}
		})
	}
}

func TestPipelineRefuses(t *testing.T) {
	for _, filters := range [][]meta.Filter{
		{{ID: 32013, Name: "zfp"}},
		{{ID: meta.FilterZstd, Name: "zstd"}, {ID: meta.FilterBzip2, Name: "bzip2"}},
		{{ID: meta.FilterShuffle, Name: "shuffle"}, {ID: meta.FilterNbit, Name: "nbit", Params: []uint32{8, 0, 25, 1, 4, 0, 12, 0}}},
		{{ID: meta.FilterDeflate, Name: "deflate"}, {ID: meta.FilterLZF, Name: "lzf"}},
		{{ID: meta.FilterScaleOffset, Name: "scaleoffset", Params: []uint32{2, 0, 100, 0, 1, 1, 0, 0, 0, 0}}, {ID: meta.FilterLZF, Name: "lzf"}},
		{{ID: meta.FilterShuffle, Name: "shuffle"}, {ID: meta.FilterScaleOffset, Name: "scaleoffset", Params: []uint32{2, 0, 100, 0, 1, 1, 0, 0, 0, 0}}},
	} {
		if _, err := newPipeline(filters, 4, 100); !errors.Is(err, meta.ErrUnsupported) {
			t.Errorf("%v: error %v", filters, err)
		}
	}
}

// No memory is taken for a chunk that so few stored bytes cannot be.
func TestImpossibleRatio(t *testing.T) {
	p, err := newPipeline([]meta.Filter{{ID: meta.FilterDeflate}}, 1, 1<<30)
	require.NoError(t, err)
	if p.possible(1<<30/1032-100) || !p.possible(1<<30/1032) {
		t.Error("2^30 bytes: limit is not where deflate's is")
	}
}
