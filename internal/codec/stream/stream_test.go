package stream

import (
	"bytes"
	"compress/gzip"
	"errors"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

// gzipped returns a member with all that its head can have.
func gzipped(t testing.TB, b []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	require.NoError(t, err)
	w.Name, w.Comment, w.Extra = "a name", "a comment", []byte("extra")
	if _, err = w.Write(b); errors.Join(err, w.Close()) != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestGzip(t *testing.T) {
	for _, n := range []int{0, 1, 300, 70_000} {
		want := h5test.Values(3, n)
		whole := gzipped(t, want, gzip.BestSpeed)
		two := append(gzipped(t, want[:n/3], gzip.DefaultCompression), gzipped(t, want[n/3:], gzip.NoCompression)...)
		for i, z := range [][]byte{whole, two} {
			dst := make([]byte, n)
			if err := Gzip(dst, z); err != nil || !bytes.Equal(dst, want) {
				t.Fatalf("%d bytes, stream %d: %v", n, i, err)
			}
			for _, bad := range [][]byte{nil, z[:5], z[:20], z[:len(z)-1], append(bytes.Clone(z), 0)} {
				if Gzip(dst, bad) == nil {
					t.Errorf("%d bytes, stream %d: %d bytes of it were taken", n, i, len(bad))
				}
			}
			for _, at := range []int{1, 2, len(z) - 1, len(z) - 8} {
				bad := bytes.Clone(z)
				bad[at] ^= 1
				if Gzip(dst, bad) == nil {
					t.Errorf("%d bytes, stream %d: byte %d is another, and that was taken", n, i, at)
				}
			}
			if Gzip(make([]byte, n+1), z) == nil || n > 0 && Gzip(make([]byte, n-1), z) == nil {
				t.Errorf("%d bytes, stream %d: another length was taken", n, i)
			}
		}
	}
}

// FuzzGzip compares with compress/gzip what both take.
func FuzzGzip(f *testing.F) {
	f.Add(gzipped(f, []byte("hello, hello"), 6), 12)
	f.Fuzz(func(t *testing.T, z []byte, n int) {
		dst := make([]byte, min(max(n, 0), 1<<16))
		if Gzip(dst, z) != nil {
			return
		}
		r, err := gzip.NewReader(bytes.NewReader(z))
		if err != nil {
			return // of a head whose own checksum is wrong
		}
		want := make([]byte, len(dst))
		if err := fill(want, r); err != nil || !bytes.Equal(dst, want) {
			t.Errorf("other bytes than compress/gzip, or %v", err)
		}
	})
}
