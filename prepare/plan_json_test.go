package prepare

import (
	"encoding/json"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// Plans of parts keep the names and the order of the members of a Config, as two builds may make the parts of one dataset.
func TestPlannedConfig(t *testing.T) {
	c := DefaultConfig()
	c.From, c.Fields, c.Outside, c.Images.Resize, c.Images.Crop, c.Images.DType = "csv", "a", true, []int{8}, []int{4}, tensor.Float32
	c.Images.Normalize = normalizeOf(t, "0.5/0.25")
	c.Images.Rules.Orient, c.Images.Rules.Deep, c.Images.Quality, c.Images.Independent, c.Images.Transforms = true, HighByte, 7, []string{"x"}, []byte(`[{"op":"Flip"}]`)
	c.Skip, c.MaxErrors, c.Split, c.Stratify.Wanted, c.Shuffle = true, Limit{Set: true, Percent: 2}, []Share{{Name: "a", Share: 1}}, true, Seed{Set: true, Seed: 3}
	c.Compress = Compress{Method: Gzip, Level: 3}
	text, err := c.shared()
	require.NoError(t, err)
	const want = `{"Source":"","From":"csv","Fields":"a","Missing":"","Records":"","Align":"","Instances":null,"Outside":true,"Resize":[8],"Fit":"","Crop":[4],"Filter":"bilinear","PassOrder":"auto","Color":"","Layout":"","Normalize":{"Name":"0.5/0.25","Dataset":false,"Fields":null,"Mean":[0.5],"Std":[0.25]},"Orient":true,"RefuseAlpha":false,"Alpha":0,"Deep":1,"RefuseCMYK":false,"MaxPixels":178956970,"KeepEncoded":false,"Decode":false,"Quality":7,"LargerThan":0,"Independent":["x"],"Transforms":[{"op":"Flip"}],"Skip":true,"MaxErrors":{"Set":true,"Count":0,"Percent":2},"Names":"auto","Dedup":false,"Split":[{"Name":"a","Share":1}],"Stratify":{"Wanted":true,"Field":""},"Shuffle":{"Set":true,"Seed":3},"NormalizeSplit":"","Dest":"","Format":"","ShardBytes":0,"Compress":{"On":true,"Zstd":false,"Level":3,"ChunkRecords":0,"ChunkBytes":0,"Shuffle":""},"View":false,"Overwrite":false,"Append":false,"Resume":false,"Spool":"","Workers":0,"Memory":0,"Checkpoint":0,"Rank":{"Index":0,"Size":0,"From":""},"DType":"float32"}`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	var back Config
	require.NoError(t, back.setShared(text))
	again, err := back.shared()
	if err != nil || string(again) != want || !json.Valid(text) {
		t.Errorf("read back as\n%s, %v", again, err)
	}
}
