package layout

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// The numbers of the chunks are those of the list, and each chunk is in a piece that names it.
func TestChunksOfLayout(t *testing.T) {
	for _, name := range []string{"new-chunks", "old-chunks"} {
		l := chart(t, datasettest.SmallHDF5(name))
		if len(l.Chunks) != 4 {
			t.Fatalf("%s: %+v", name, l.Chunks)
		}
		var list strings.Builder
		require.NoError(t, ListChunks(&list, datasettest.SmallHDF5(name), true))
		got := make(map[string]ChunkMap)
		for d := json.NewDecoder(strings.NewReader(list.String())); d.More(); {
			var c listed
			require.NoError(t, d.Decode(&c))
			m := got[c.Field]
			if m.Count == 0 {
				m.From, m.Smallest = c.Offset, c.Bytes
			}
			m.Count, m.Stored = m.Count+1, m.Stored+c.Bytes
			m.From, m.To = min(m.From, c.Offset), max(m.To, c.Offset+c.Bytes)
			m.Smallest, m.Largest = min(m.Smallest, c.Bytes), max(m.Largest, c.Bytes)
			got[c.Field] = m
			if what := pieceAt(l, c.Offset); !strings.Contains(what, "of "+c.Field) {
				t.Errorf("%s: chunk at %d of %s is in %q", name, c.Offset, c.Field, what)
			}
		}
		for _, m := range l.Chunks {
			g := got[m.Field]
			want := ChunkMap{Count: m.Count, Stored: m.Stored, From: m.From, To: m.To, Smallest: m.Smallest, Largest: m.Largest}
			if !reflect.DeepEqual(g, want) || m.Median < m.Smallest || m.Median > m.Largest || m.Places < m.Count || m.Bytes == 0 {
				t.Errorf("%s: %+v, the list has %+v", name, m, g)
			}
		}
	}
}

func pieceAt(l *Layout, at int64) string {
	for _, p := range l.Pieces {
		if p.Offset <= at && at < p.Offset+p.Size {
			return p.What
		}
	}
	return ""
}

func TestChunksAsText(t *testing.T) {
	var b strings.Builder
	require.NoError(t, chart(t, datasettest.SmallHDF5("new-chunks")).Render(&b))
	for _, want := range []string{"6 chunks of fixed, 3 chunks of grow, 1 chunk of single,", "index of fixed (94 bytes)\n", "B-tree v2 at 1731"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	b.Reset()
	if err := ListChunks(&b, datasettest.SmallHDF5("new-chunks"), false); err != nil || !strings.HasPrefix(b.String(), "fixed  [0 0]  offset 2048  bytes 12\nfixed  [0 3]") {
		t.Errorf("error %v\n%s", err, &b)
	}
	c := listed{Field: "x\x1b", First: []int64{1}, Offset: 2, Bytes: 3, Raw: notApplied(&meta.Dataset{Filters: []meta.Filter{{Name: "shuffle"}, {Name: "deflate"}}}, 2)}
	if got, want := c.String(), `x\x1b  [1]  offset 2  bytes 3  without deflate`+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// An index that cannot be read is said, and the rest is shown.
func TestChunksOfCorruptIndex(t *testing.T) {
	data, err := os.ReadFile(datasettest.SmallHDF5("new-chunks"))
	require.NoError(t, err)
	data[463+20] ^= 1 // of the fixed array
	path := filepath.Join(t.TempDir(), "x.h5")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	l := chart(t, path)
	if m := l.Chunks[0]; m.Field != "fixed" || m.Problem == "" || l.Chunks[1].Problem != "" || l.Chunks[1].Count != 3 {
		t.Errorf("%+v", l.Chunks)
	}
	if what := pieceAt(l, 2048); !strings.Contains(what, "perhaps chunks of fixed, whose index cannot be read") || !strings.HasSuffix(what, ", padding or free space") {
		t.Errorf("%q", what)
	}
	var b strings.Builder
	if err := ListChunks(&b, path, false); err == nil || b.Len() > 0 {
		t.Errorf("error %v\n%s", err, &b)
	}
}

func TestNoChunks(t *testing.T) {
	var b strings.Builder
	if err := ListChunks(&b, datasettest.SmallHDF5("old-basic"), false); err != nil || !strings.Contains(b.String(), "none of its datasets is chunked") {
		t.Errorf("error %v\n%s", err, &b)
	}
	if err := ListChunks(&b, datasettest.Animals(t), false); err == nil || !strings.Contains(err.Error(), "no chunks to list") {
		t.Errorf("a folder: %v", err)
	}
	if l := chart(t, datasettest.SmallHDF5("old-basic")); l.Chunks != nil {
		t.Errorf("%+v", l.Chunks)
	}
}
