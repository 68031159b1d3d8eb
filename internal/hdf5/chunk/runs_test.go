package chunk

import (
	"bytes"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Runs puts what Records reads where it was asked to, whatever the order and the overlaps.
func TestRuns(t *testing.T) {
	pool := NewPool(2)
	defer pool.Close()
	for _, name := range []string{"gzip", "all", "lzf", "plain", "rest", "flat"} {
		r := mapped(t, small(t, "small-old.h5"), name, Options{Pool: pool})
		size, n := int64(r.RecordBytes()), r.Len()
		all := make([]byte, n*size)
		require.NoError(t, r.Records(t.Context(), all, 0, n))
		runs := []Run{{n - 2, 2, 0}, {0, n, 2}, {1, 3, n + 2}, {1, 0, 0}, {2, 1, n + 6}}
		want := bytes.Repeat([]byte{0xaa}, int((n+8)*size))
		got := bytes.Clone(want)
		for _, x := range runs {
			copy(want[x.To*size:], all[x.First*size:(x.First+x.N)*size])
		}
		if err := r.Runs(t.Context(), got, runs); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes, error %v", name, err)
		}
		for _, x := range []Run{{-1, 1, 0}, {n, 1, 0}, {1, n, 0}, {0, -1, 0}, {1 << 62, 1, 0}} {
			if err := r.Runs(t.Context(), got, []Run{x}); err == nil {
				t.Errorf("%s: %+v: no error", name, x)
			}
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a run outside of dst: no panic", name)
				}
			}()
			_ = r.Runs(t.Context(), got, []Run{{0, 2, n + 7}})
		}()
	}
}
