package dataset

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func TestBoxSurvey(t *testing.T) {
	field := store.NewRagged("boxes", tensor.Float32, 4)
	field.Content = tensor.Boxes
	schema := datasettest.SchemaOf(tensor.Uint8, tensor.HWC, "a")
	schema.Fields = append(schema.Fields, field)
	h, w := float32(schema.Fields[0].Shape[0]), float32(schema.Fields[0].Shape[1])
	nan := float32(math.NaN())
	records := [][]float32{
		{0, 0, w, h, 1, 1, 2, 3}, {}, {0, 0, w + 1, h}, {1, 1, 1, 2}, {-1, 0, 1, 1, 2, 0, 1, 1, 0, nan, 1, 1},
	}
	path := datasettest.Build(t, schema, len(records), store.Info{}, func(i int, values [][]byte) {
		for _, v := range records[i] {
			values[2] = binary.LittleEndian.AppendUint32(values[2], math.Float32bits(v))
		}
	})
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	s, err := BoxesOf(t.Context(), ds, field)
	require.NoError(t, err)
	if s.Count != 7 || s.Outside != 2 || s.Inverted != 2 || s.Empty != 1 || s.Records != 2 || s.First != 2 || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
	if len(s.Widths) != 5 || len(s.Aspects) != 4 || s.Aspects[1] != .5 || s.Shares[0] != 1 {
		t.Errorf("aspects %v, shares %v", s.Aspects, s.Shares)
	}
}
