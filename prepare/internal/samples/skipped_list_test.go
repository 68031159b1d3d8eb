package samples

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// A list of samples that were left out takes some bytes a sample, and is the same after notes
// and a restart between any two of its lines.
func TestLeftList(t *testing.T) {
	const n = 100_000
	var whole, first, second SkippedList
	var want strings.Builder
	size := 0
	for i := range n {
		s := Skipped{fmt.Sprintf("photos/class/%08d.jpg", i), "duplicate", "an earlier sample has the same content <&>"}
		fmt.Fprintf(&want, `{"sample":%q,"kind":"duplicate","reason":"an earlier sample has the same content \u003c\u0026\u003e"}`+"\n", s.Sample)
		into := &first
		if i >= n/2 {
			into = &second
		}
		if i == n/2 {
			chunks, err := first.Note()
			require.NoError(t, err)
			second.Restore(chunks, n/2)
		}
		require.NoError(t, whole.Add(s))
		require.NoError(t, into.Add(s))
	}
	for name, l := range map[string]*SkippedList{"whole": &whole, "restored": &second} {
		var got bytes.Buffer
		if err := l.WriteLines(&got); err != nil || got.String() != want.String() || l.n != n {
			t.Errorf("%s: %d samples in %d bytes, want %d; error %v", name, l.n, got.Len(), want.Len(), err)
		}
	}
	for _, c := range whole.chunks {
		size += len(c)
	}
	if size > 16*n {
		t.Errorf("%d samples take %d bytes", n, size)
	}
}
