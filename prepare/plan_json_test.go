package prepare

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// A Config comes out of the plan of a part as it went in, whether an option is set or not.
func TestPlannedConfig(t *testing.T) {
	c := DefaultConfig().common()
	check := func() {
		t.Helper()
		text, err := json.Marshal(c)
		require.NoError(t, err)
		var back Config
		require.NoError(t, json.Unmarshal(text, &back))
		if !reflect.DeepEqual(back, c) {
			t.Errorf("%s is read as\n%+v, want\n%+v", text, back, c)
		}
	}
	check()
	c.From, c.Fields, c.Outside, c.Images.Resize, c.Images.Crop, c.Images.DType = "csv", "a", true, []int{8}, []int{4}, tensor.Float32
	c.Images.Normalize = normalizeOf(t, "0.5/0.25")
	c.Images.Rules.Orient, c.Images.Rules.Deep, c.Images.Quality, c.Images.Independent, c.Images.Transforms = true, HighByte, 7, []string{"x"}, []byte(`[{"op":"Flip"}]`)
	c.Skip, c.MaxErrors, c.Split, c.Stratify.Wanted, c.Shuffle = true, Limit{Set: true, Percent: 2}, []Share{{Name: "a", Share: 1}}, true, Seed{Set: true, Seed: 3}
	c.Compress = Compress{Method: Gzip, Level: 3}
	check()
}
