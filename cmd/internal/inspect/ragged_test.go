package inspect

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// captions is a dataset of 10 records in two splits: record i has i tokens 0 to i-1, the
// text "é1" repeated i times, one box more than there are tokens, and the label i%2.
func captions(t testing.TB) string {
	t.Helper()
	text := store.NewRagged("text", tensor.Uint8)
	text.Content = store.Text
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"even", "odd"}
	schema := store.Schema{Fields: []store.Field{store.NewRagged("tokens", tensor.Int32), text, store.NewRagged("boxes", tensor.Float32, 4), labels}}
	path := filepath.Join(t.TempDir(), "captions")
	w, err := store.CreateFlat(path, schema, store.FlatOptions{Splits: []string{"train", "val"}})
	if err != nil {
		t.Fatal(err)
	}
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
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSummaryOfRaggedFieldsAndSplits(t *testing.T) {
	s, err := Describe(captions(t))
	if err != nil {
		t.Fatal(err)
	}
	const offsets = (10 + 2) * 8 // two shards, one a split
	for i, want := range []struct{ rows, bytes int64 }{{45, 45*4 + offsets}, {135, 135 + offsets}, {55, 55*16 + offsets}, {10, 80}} {
		if f := s.Fields[i]; f.Rows != want.rows || f.Bytes != want.bytes || f.Ragged != (i < 3) {
			t.Errorf("%s: %d rows, %d bytes, ragged %v; want %+v", f.Name, f.Rows, f.Bytes, f.Ragged, want)
		}
	}
	if s.Fields[1].Content != store.Text || len(s.Splits) != 2 || s.Splits[0].Records != 8 || s.Splits[1].Records != 2 {
		t.Errorf("%+v", s)
	}
	got := text(t, s, TextOptions{})
	for _, want := range []string{
		"tokens  int32    (n,)", "(n,) utf-8", "(n, 4)", "~18 bytes", "\nSplits\n  train  8  80.0 %", "\nRows a record\n", "tokens    0    9   4.5000  2.8723   45\n", "tokens_offsets  = [np.load(",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
