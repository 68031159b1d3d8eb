package feed

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// plain is 4000 pictures of one color, 0 or 1, which is their label too.
type plain struct{}

const side = 8

func (plain) Len() int { return 4000 }
func (plain) Specs() []tensor.Spec {
	return []tensor.Spec{{Name: "images", DType: tensor.Float32, Shape: tensor.Shape{1, side, side}}, {Name: "labels", DType: tensor.Uint8}}
}
func (plain) Prefetch(string, int, int) error { return nil }
func (plain) Retain() error                   { return nil }
func (plain) Release()                        {}
func (p plain) Slice(field string, a, b int) (tensor.View, error) {
	var indices []int
	for i := a; i < b; i++ {
		indices = append(indices, i)
	}
	spec := p.Specs()[map[string]int{"images": 0, "labels": 1}[field]]
	dst := make([]byte, (b-a)*spec.RecordBytes())
	err := p.Gather(context.Background(), field, indices, dst)
	return tensor.Of(spec, b-a, dst), err
}

func (plain) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	if field == "labels" {
		for i, x := range indices {
			dst[i] = byte(x % 2)
		}
		return ctx.Err()
	}
	pixels := tensor.As[float32](tensor.Of(tensor.Spec{DType: tensor.Float32}, len(dst)/4, dst))
	for i, x := range indices {
		for j := range side * side {
			pixels[i*side*side+j] = float32(x % 2)
		}
	}
	return ctx.Err()
}

// mixed returns the fields of plain, and what batch transforms do to them.
func mixed(t *testing.T, recipe string) ([]made, *mixing, error) {
	t.Helper()
	images := store.NewField("images", tensor.Float32, 1, side, side)
	images.Layout = tensor.CHW
	fields := []made{{field: images, image: infoOf(images)}, {field: store.NewField("labels", tensor.Uint8)}}
	o := new(Options)
	require.NoError(t, json.Unmarshal([]byte(recipe), &o.BatchTransforms))
	m, err := o.mixing(fields)
	return fields, m, err
}

// RandomChoice draws MixUp, which blends all pixels, and CutMix, which copies some, as often as p says.
func TestRandomChoiceDrawsInProportion(t *testing.T) {
	for _, c := range []struct {
		p    string
		want float64 // share of batches that CutMix has mixed
	}{{"[1,0]", 0}, {"[0,2]", 1}, {"[1,3]", 0.75}, {"[0.9,0.1]", 0.1}} {
		fields, m, err := mixed(t, `[{"op":"RandomChoice","p":`+c.p+`,"transforms":[{"op":"MixUp","num_classes":2},{"op":"CutMix","num_classes":2}]}]`)
		require.NoError(t, err)
		ld, err := loader.New(plain{}, loader.Options{BatchSize: 2, Collate: m.collate(fields)})
		require.NoError(t, err)
		cut, batches := 0, 0
		for b, err := range ld.Epoch(context.Background(), 0) {
			require.NoError(t, err)
			if x := tensor.As[float32](b.Field("images"))[0]; x == 0 || x == 1 {
				cut++
			}
			batches++
		}
		require.NoError(t, ld.Close())
		if share := float64(cut) / float64(batches); math.Abs(share-c.want) > 0.05 { // 5 standard deviations of 2000 draws
			t.Errorf("p %s: CutMix has mixed %.3f of %d batches, want %v", c.p, share, batches, c.want)
		}
	}
}

// A parameter of zero is zero or an error, and not the default.
func TestBatchTransformsOfZero(t *testing.T) {
	for _, c := range []struct{ recipe, want string }{
		{`[{"op":"MixUp","alpha":0,"num_classes":2}]`, "MixUp: alpha is 0; it must be positive: to mix nothing, leave MixUp out"},
		{`[{"op":"CutMix","alpha":0,"num_classes":2}]`, "CutMix: alpha is 0"},
		{`[{"op":"RandomChoice","p":[1],"transforms":[{"op":"CutMix","alpha":-1,"num_classes":2}]}]`, "RandomChoice: alpha is -1"},
		{`[{"op":"MixUp","num_classes":0}]`, "num_classes is 0; it must be 2 or more"},
		{`[{"op":"LabelSmoothing","smoothing":0,"num_classes":2}]`, ""},
		{`[{"op":"MixUp","num_classes":2}]`, ""},
	} {
		_, _, err := mixed(t, c.recipe)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.recipe, err, c.want)
		}
	}
}

// halves are plain, with labels that no class has.
type halves struct{ plain }

func (h halves) Specs() []tensor.Spec {
	specs := h.plain.Specs()
	specs[1].DType = tensor.Float32
	return specs
}

func (h halves) Slice(field string, a, b int) (tensor.View, error) {
	if field != "labels" {
		return h.plain.Slice(field, a, b)
	}
	return tensor.From(slices.Repeat([]float32{0.5}, b-a)), nil
}

func (h halves) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	if field != "labels" {
		return h.plain.Gather(ctx, field, indices, dst)
	}
	for i := range indices {
		copy(dst[4*i:], tensor.From([]float32{0.5}).Bytes())
	}
	return nil
}

// A label with a fraction is refused, and does not become a class.
func TestLabelsAreWhole(t *testing.T) {
	fields, m, err := mixed(t, `[{"op":"MixUp","num_classes":2}]`)
	require.NoError(t, err)
	ld, err := loader.New(halves{}, loader.Options{BatchSize: 2, Collate: m.collate(fields)})
	require.NoError(t, err)
	defer ld.Close()
	for _, err := range ld.Epoch(context.Background(), 0) {
		if want := "has the label 0.5, and there are 2 classes"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		break
	}
}
