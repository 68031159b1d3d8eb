package summary

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

func TestSummaryOfRaggedFieldsAndSplits(t *testing.T) {
	s, err := Describe(datasettest.Captions(t))
	require.NoError(t, err)
	const offsets = (10 + 2) * 8 // two shards, one a split
	for i, want := range []struct{ rows, bytes int64 }{{45, 45*4 + offsets}, {135, 135 + offsets}, {55, 55*16 + offsets}, {10, 80}} {
		if f := s.Fields[i]; f.Rows != want.rows || f.Bytes != want.bytes || f.Ragged != (i < 3) {
			t.Errorf("%s: %d rows, %d bytes, ragged %v; want %+v", f.Name, f.Rows, f.Bytes, f.Ragged, want)
		}
	}
	if s.Fields[1].Content != tensor.Text || len(s.Splits) != 2 || s.Splits[0].Records != 8 || s.Splits[1].Records != 2 {
		t.Errorf("%+v", s)
	}
	got := text(t, s, 0)
	for _, want := range []string{
		"tokens  int32    (n,)", "(n,) utf-8", "(n, 4)", "~18 bytes", "\nSplits\n  train  8  80.0 %", "\nRows a record\n", "tokens    0    9   4.5000  2.8723   45\n", "tokens_offsets  = [np.load(",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
