package write

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// testSchema has a ragged field and one of a fixed length, so that there are several shards.
func testSchema() store.Schema {
	return store.Schema{Fields: []store.Field{store.NewRagged("tokens", tensor.Int32), store.NewField("labels", tensor.Int64)}}
}

// fillTest makes record i.
func fillTest(r *store.Record, i int) {
	r.Values[0] = r.Values[0][:0]
	for k := range i * 37 % 101 {
		r.Values[0] = binary.LittleEndian.AppendUint32(r.Values[0], uint32(i*1000+k))
	}
	binary.LittleEndian.PutUint64(r.Values[1], uint64(i))
}

// begin opens a stage and begins a build of testSchema in it.
func begin(t *testing.T, dest string, j *store.Journal) (*Stage, *ShardWriter) {
	t.Helper()
	s, err := OpenStage(dest, StageOptions{Overwrite: true, Keep: j != nil})
	require.NoError(t, err)
	b, err := NewShardWriter(s, testSchema(), ShardOptions{ShardBytes: 1, Journal: j})
	if err != nil {
		t.Fatal(errors.Join(err, s.Leave()))
	}
	return s, b
}

// add appends the records from first to end.
func add(t *testing.T, b *ShardWriter, first, end int) {
	t.Helper()
	r := store.NewRecord(testSchema())
	for i := first; i < end; i++ {
		fillTest(r, i)
		require.NoError(t, b.Append(r))
	}
}

// finish ends a build but for its publication.
func finish(t *testing.T, s *Stage, b *ShardWriter) {
	t.Helper()
	m, err := b.Finish(store.Info{})
	require.NoError(t, err)
	text, err := m.Encode()
	require.NoError(t, err)
	require.NoError(t, s.Folder.WriteFile(layout.ManifestName, text))
}
