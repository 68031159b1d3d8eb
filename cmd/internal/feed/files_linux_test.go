package feed

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// viewed are records of 1024 bytes in shards of 4 MiB: whole pages, which are side by side in memory, so that a batch may
// be in two files.
const viewed = 9000

func makeViewed(t *testing.T) string {
	t.Helper()
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, 1024), store.NewField("label", tensor.Int64)}}
	return datasettest.BuildFlat(t, schema, flat.Options{ShardBytes: 4 << 20}, viewed, store.Info{}, func(i int, r *store.Record) {
		binary.LittleEndian.PutUint64(r.Values[0], uint64(i))
		binary.LittleEndian.PutUint64(r.Values[1], uint64(i))
	})
}

// fileOf returns the bytes of a file that was passed, for which it reads messages.
func (c *client) fileOf(number int, paths map[int]string) []byte {
	c.t.Helper()
	for paths[number] == "" {
		if r := c.receive(); r.File != "" {
			paths[r.Number] = r.File
		} else if !r.Awake {
			c.t.Fatalf("waiting for file %d: %+v", number, r)
		}
	}
	data, err := os.ReadFile(paths[number])
	require.NoError(c.t, err)
	return data
}

// TestFiles compares batches that are bytes of files, and those in two files, which are in the shared memory.
func TestFiles(t *testing.T) {
	c := dial(t.Context(), t, makeViewed(t))
	c.send(`{"hello":{"version":4,"positions":true,"files":true,"options":{"batch_size":1000,"slots":2}}}`)
	c.take(c)
	if c.welcome = c.receive().Welcome; c.welcome == nil || c.welcome.Positions == nil {
		t.Fatalf("welcome: %+v", c.welcome)
	}
	c.start()
	paths, shared := make(map[int]string), 0
	for k := range uint64(18) {
		at := readyRing + 8*int(k%uint64(c.welcome.Positions.Slots))
		c.setWord(clientWaits, k+1)
		for c.word(at)>>slotBits != k+1 {
			if r := c.receive(); r.File != "" {
				paths[r.Number] = r.File
			} else if !r.Awake {
				t.Fatalf("waiting for batch %d: %+v", k, r)
			}
		}
		b := c.shown(k)
		first := uint64(k%9) * 1000
		if got := binary.NativeEndian.Uint64(c.read(b.Indices, 8)); got != first || b.Count != 1000 {
			t.Fatalf("batch %d has %d records from %d on", k, b.Count, got)
		}
		for i, size := range []int{1024, 8} {
			var data []byte
			if p := b.Fields[i]; p.File == 0 {
				shared++
				data = c.read(p.At, 1000*size)
			} else {
				data = c.fileOf(p.File, paths)[p.At:][:1000*size]
			}
			for r := range uint64(1000) {
				if !bytes.Equal(data[int(r)*size:][:8], binary.LittleEndian.AppendUint64(nil, first+r)) {
					t.Fatalf("batch %d, field %d: record %d is another", k, i, r)
				}
			}
		}
		c.giveBack(b.Slot)
	}
	// Batches 4 and 8 of each epoch are in two shards. The files of two shards are passed in each epoch.
	if shared != 8 || len(paths) != 8 {
		t.Errorf("%d fields in the shared memory, and %d files", shared, len(paths))
	}
}
