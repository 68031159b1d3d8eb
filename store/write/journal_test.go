package write

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func FuzzJournal(f *testing.F) {
	line := func(e entry) []byte {
		text, err := e.line()
		require.NoError(f, err)
		return text[9:]
	}
	head := line(entry{Build: &buildEntry{Format: 1, Fields: testSchema().Fields, Options: map[string]string{"splits": "[]"}}})
	shard := line(entry{Shard: &shardEntry{0, store.Shard{Count: 3}}})
	check := line(entry{Checkpoint: &checkpoint{Records: 3, Sections: []sectionState{{1, 2, []arrayState{{4, 5}}}}, Note: json.RawMessage("3")}})
	f.Add(slices.Concat(head, shard, check, line(entry{Renames: []rename{{"a", "b"}}})), 7)
	f.Add([]byte("{}"), 0)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		// Lines with their checksums, so that what is in them is read.
		var sealed []byte
		for _, text := range bytes.SplitAfter(data, []byte("\n")) {
			sealed = append(append(sealed, layout.HexCRC(layout.CRC32C(text))+" "...), text...)
		}
		sealed = sealed[:max(0, min(len(sealed), len(sealed)-cut%64))]
		h, err := readJournal(sealed)
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		if h == nil {
			return
		}
		if h.size > int64(len(sealed)) || h.build == nil {
			t.Errorf("%d bytes of %d", h.size, len(sealed))
		}
		restoreFuzzed(t, h)
	})
}

// restoreFuzzed continues the build of a journal in an empty stage.
func restoreFuzzed(t *testing.T, h *history) {
	stage, err := OpenStage(filepath.Join(crash.MemoryDir(t), "ds"), StageOptions{})
	require.NoError(t, err)
	defer stage.Abort()
	b, err := NewShardWriter(stage, testSchema(), ShardOptions{})
	require.NoError(t, err)
	if err := b.restore(h); err == nil && h.last != nil && b.manifest.Records() != h.last.Records {
		t.Error("restored another number of records")
	}
	b.Close()
}

// A build that counted no labels of small integers continues without counts, and not with those of its last records.
func TestLabelsOfEarlierBuildsAreNotCounted(t *testing.T) {
	f := store.NewField("label", tensor.Uint8)
	f.Classes = []string{"cat", "dog", "owl"}
	schema := store.Schema{Fields: []store.Field{f}}
	add := func(mb *ManifestBuilder, label byte) {
		r := store.NewRecord(schema)
		r.Values[0][0] = label
		require.NoError(t, mb.Add(r, make([]uint32, 1)))
	}
	first := NewManifestBuilder(schema)
	add(first, 1)
	state := first.State()
	for _, counted := range []bool{true, false} {
		if !counted {
			clear(state[len(state)-8*len(f.Classes):])
		}
		next := NewManifestBuilder(schema)
		require.NoError(t, next.Restore(state))
		add(next, 2)
		want := []int64{0, 1, 1}
		if !counted {
			want = nil
		}
		if got := next.Manifest(store.Info{}).Statistics["label"].Labels; !slices.Equal(got, want) {
			t.Errorf("counted: %v: %v, want %v", counted, got, want)
		}
	}
}

func FuzzManifestBuilderState(f *testing.F) {
	l := NewManifestBuilder(testSchema(), "a", "b")
	r := store.NewRecord(testSchema())
	for i := range 5 {
		fillTest(r, i)
		r.Split = "a"
		require.NoError(f, l.Add(r, make([]uint32, 2)))
	}
	f.Add(l.State())
	f.Add([]byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, state []byte) {
		l := NewManifestBuilder(testSchema(), "a", "b")
		if l.Restore(state) != nil {
			return
		}
		again := NewManifestBuilder(testSchema(), "a", "b")
		if err := again.Restore(l.State()); err != nil || !bytes.Equal(again.State(), l.State()) {
			t.Errorf("a state that was restored is not the same state again: %v", err)
		}
	})
}
