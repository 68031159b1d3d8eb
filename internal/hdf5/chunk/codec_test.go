package chunk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/require"
)

// values returns n bytes that compress to about a third.
func values(n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range n / 4 {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(i/7*3+rng.IntN(9)))
	}
	return b
}

// framedLZ4 is data as filter 32004 stores it.
func framedLZ4(t testing.TB, data []byte, block int) []byte {
	t.Helper()
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(len(data))), uint32(block))
	for at := 0; at < len(data); at += block {
		from := data[at:min(at+block, len(data))]
		to := make([]byte, lz4.CompressBlockBound(len(from)))
		n, err := lz4.CompressBlock(from, to, nil)
		require.NoError(t, err)
		if n == 0 {
			n = copy(to, from)
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(n)), to[:n]...)
	}
	return b
}

func zstdOf(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return z.EncodeAll(data, nil)
}

func mustNew(t testing.TB, id uint16, size int, params ...uint32) Codec {
	t.Helper()
	c, err := New(meta.Filter{ID: id, Params: params}, size)
	require.NoError(t, err)
	return c
}

// Every cut of a good stream is an error, and no stream writes more than there is room for. The streams of other
// programs are in package chunk's tests.
func TestStreams(t *testing.T) {
	data := values(5000)
	for _, c := range []struct {
		id     uint16
		stored []byte
	}{
		{meta.FilterLZ4, framedLZ4(t, data, 1024)}, {meta.FilterZstd, zstdOf(t, data)},
	} {
		codec := mustNew(t, c.id, len(data))
		got, err := codec.Decode(make([]byte, len(data)), c.stored)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("filter %d: error %v, or other bytes", c.id, err)
		}
		if got, err := codec.Decode(make([]byte, len(data)+100), c.stored); err != nil || len(got) != len(data) {
			t.Errorf("filter %d: %d bytes, error %v, where there is more room", c.id, len(got), err)
		}
		if _, err := codec.Decode(make([]byte, len(data)-1), c.stored); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("filter %d: error %v without room", c.id, err)
		}
		for n := 1; n < len(c.stored); n += 7 {
			if got, err := codec.Decode(make([]byte, len(data)), c.stored[:n]); err == nil && len(got) == len(data) {
				t.Fatalf("filter %d: %d of %d bytes are a chunk", c.id, n, len(c.stored))
			}
		}
	}
}

func TestParameters(t *testing.T) {
	for _, f := range []meta.Filter{
		{ID: meta.FilterSzip}, {ID: meta.FilterSzip, Params: []uint32{141, 8, 33, 24}}, {ID: meta.FilterSzip, Params: []uint32{141, 34, 16, 24}},
		{ID: meta.FilterNbit}, {ID: meta.FilterNbit, Params: []uint32{8, 0, 25, 1, 9, 0, 12, 0}}, {ID: meta.FilterNbit, Params: []uint32{8, 0, 24, 1, 4, 0, 12, 0}},
		{ID: meta.FilterNbit, Params: []uint32{8, 0, 25, 1, 4, 0, 30, 4}}, {ID: meta.FilterNbit, Params: []uint32{5, 0, 25, 2, 4}},
		{ID: meta.FilterBitshuffle}, {ID: meta.FilterBitshuffle, Params: []uint32{0, 4, 0}}, {ID: meta.FilterBitshuffle, Params: []uint32{0, 4, 2, 9}},
		{ID: meta.FilterBitshuffle, Params: []uint32{0, 4, 2, 8, 1}},
	} {
		if _, err := New(f, 100); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%v: error %v", f, err)
		}
	}
	if _, err := New(meta.Filter{ID: 32013}, 100); !errors.Is(err, meta.ErrUnsupported) {
		t.Errorf("zfp: error %v", err)
	}
}

func BenchmarkDecode(b *testing.B) {
	data := values(1 << 20)
	shuffled := mustNew(b, meta.FilterBitshuffle, len(data), 0, 4, 4)
	for _, c := range []struct {
		name   string
		codec  Codec
		stored []byte
	}{
		{"lz4", mustNew(b, meta.FilterLZ4, len(data)), framedLZ4(b, data, 1<<20)},
		{"zstd", mustNew(b, meta.FilterZstd, len(data)), zstdOf(b, data)},
		{"bitshuffle", shuffled, data},
		{"nbit", mustNew(b, meta.FilterNbit, len(data), 8, 0, 1<<18, 1, 4, 0, 12, 0), data},
		{"szip", mustNew(b, meta.FilterSzip, len(data), 141, 16, 16, 256), append([]byte{0, 0, 16, 0}, bytes.Repeat([]byte{0x35, 0x55, 0xff, 0x0d}, 1<<18)...)},
	} {
		b.Run(c.name, func(b *testing.B) {
			dst := make([]byte, len(data))
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := c.codec.Decode(dst, c.stored); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
