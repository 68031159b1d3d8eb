package datasettest

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// Captions is a dataset of 10 records in two splits: record i has i tokens 0 to i-1, the
// text "é1" repeated i times, one box more than there are tokens, and the label i%2.
func Captions(t testing.TB) string {
	t.Helper()
	text := store.NewRagged("text", tensor.Uint8)
	text.Content = tensor.Text
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"even", "odd"}
	schema := store.Schema{Fields: []store.Field{store.NewRagged("tokens", tensor.Int32), text,
		store.NewRagged("boxes", tensor.Float32, 4), labels}}
	path := filepath.Join(t.TempDir(), "captions")
	w, err := flat.Create(path, schema, flat.Options{Splits: []string{"train", "val"}})
	require.NoError(t, err)
	defer w.Close()
	for i := range 10 {
		r := store.NewRecord(schema)
		r.Split = []string{"train", "val"}[i/8]
		for k := range i {
			r.Values[0] = binary.LittleEndian.AppendUint32(r.Values[0], uint32(k))
		}
		r.Values[1] = append(r.Values[1], strings.Repeat("é1", i)...)
		r.Values[2] = append(r.Values[2], make([]byte, 16*(i+1))...)
		r.Values[3][0] = byte(i % 2)
		require.NoError(t, w.Append(r))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	return path
}
