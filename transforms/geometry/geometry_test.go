package geometry

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

var cases = flag.Int("cases", 2000, "random cases of a property")

var words = Words{Independent: "independent=%s", Pipelines: "pipelines", Contents: "if so: %s:%s", Instances: "instances of %s and %s"}

func compose(t testing.TB, recipe string) *transforms.Pipeline {
	t.Helper()
	if recipe == "" {
		return nil
	}
	p, err := transforms.Parse([]byte(recipe))
	if err != nil {
		t.Fatalf("%s: %v", recipe, err)
	}
	return p
}

// Each operation is in the table.
func TestEveryOperationHasAnEffect(t *testing.T) {
	for _, op := range transforms.Ops() {
		if _, ok := effects[op]; !ok && op != "ConvertDType" && op != "ToDtype" {
			t.Errorf("%s is in no table: it counts as moving pixels and changing values", op)
		}
	}
}

type threshold struct{}

func (threshold) Build(*transforms.Plan) error { return nil }

func TestEffects(t *testing.T) {
	for _, c := range []struct {
		recipe string
		want   Effect
	}{
		{`[{"op":"Resize","size":[8]}]`, Moves | Blends},
		{`[{"op":"Resize","size":[8],"interpolation":"nearest"}]`, Moves},
		{`[{"op":"RandomResizedCrop","size":[8],"interpolation":"nearest"}]`, Moves},
		{`[{"op":"RandomHorizontalFlip"}]`, Moves},
		{`[{"op":"RandomRotation","degrees":[9],"interpolation":"bilinear"}]`, Moves | Blends},
		{`[{"op":"Rotate","angle":9}]`, Moves | Blends},
		{`[{"op":"RandAugment","interpolation":"nearest"}]`, Moves | Blends | Recolor},
		{`[{"op":"ColorJitter","brightness":0.5}]`, Recolor},
		{`[{"op":"ToTensor"}]`, Recolor},
		{`[{"op":"ConvertDType","dtype":"float32"}]`, Recolor},
		{`[{"op":"ConvertDType","dtype":"float32","no_scale":true}]`, 0},
		{`[{"op":"ToDtype","dtype":"float32","scale":true}]`, Recolor},
		{`[{"op":"ToDtype","dtype":"float32"}]`, 0},
		{`[{"op":"ToLayout","layout":"chw"}]`, 0},
		{`[{"op":"Grayscale"}]`, 0},
	} {
		if got := Of(compose(t, c.recipe).Transforms()[0]); got != c.want {
			t.Errorf("%s: %b, want %b", c.recipe, got, c.want)
		}
	}
	if got := Of(threshold{}); got != all {
		t.Errorf("an operation of a user: %b", got)
	}
}

// spec reads name:dtype[shape], name:image, name:chw8x9x3.
func spec(t testing.TB, text string) tensor.Spec {
	t.Helper()
	name, kind, _ := strings.Cut(text, ":")
	s := tensor.Spec{Name: name}
	var c, h, w int
	switch {
	case kind == "image":
		s.DType, s.Ragged, s.Content = tensor.Uint8, true, tensor.Image
	case kind == "text":
		s.DType, s.Ragged, s.Content = tensor.Uint8, true, tensor.Text
	case strings.HasPrefix(kind, "chw"):
		if _, err := fmt.Sscanf(kind, "chw%dx%dx%d", &c, &h, &w); err != nil {
			t.Fatal(text, err)
		}
		s.DType, s.Shape, s.Layout = tensor.Uint8, tensor.Shape{c, h, w}, tensor.CHW
	default:
		dtype, axes, _ := strings.Cut(strings.TrimSuffix(kind, "]"), "[")
		if err := s.DType.UnmarshalText([]byte(dtype)); err != nil {
			t.Fatal(text, err)
		}
		for _, a := range strings.Split(axes, ",") {
			n := 0
			if a == "*" {
				s.Ragged = true
			} else if _, err := fmt.Sscan(a, &n); err == nil {
				s.Shape = append(s.Shape, n)
			}
		}
	}
	return s
}

// A field may be boxes, points or a mask by its name and its shape.
func TestMayBe(t *testing.T) {
	for text, want := range map[string]bool{
		"boxes:float32[*,4]": true, "x:float32[*,4]": true, "x:int64[4]": true, "x:float64[7,4]": true, "bbox:text": true,
		"xmin:int64": true, "bbox_x:float32": true,
		"Keypoints:float32[51]": true, "faceLandmarks:float32[10]": true, "x:float32[17,3]": true, "x:float32[*,17,3]": true,
		"x:float32[*,2]": true, "polygon:float32[*]": true, "boxes2:int64[*]": true,
		"box:bool[3]": true,

		"label:int64": false, "tokens:int64[*]": false, "x:uint8[4]": false, "embedding:float32[512]": false,
		"x:float32[2]": false, "x:float32[*,3]": false, "K:float32[3,3]": false, "pose:float32[4,4]": false,
		"caption:text": false, "images:image": false, "boxes:chw3x8x8": false, "points:int64": false,
		"inboxes:float32[3]": false,
	} {
		if got := MayBePlaces(spec(t, text)); got != want {
			t.Errorf("%s: places %v, want %v", text, got, want)
		}
	}
	record := []Field{{Spec: spec(t, "images:chw3x8x9")}, {Spec: spec(t, "labels:int64")}}
	for text, want := range map[string]bool{
		"mask:image": true, "seg_mask:chw3x8x9": true, "depthMap:image": true, "other:chw1x8x9": true, "x:uint8[8,9]": true,
		"x:int64[1,8,9]": true, "masks:uint8[4,4]": true,
		"images:image": false, "left:chw3x8x9": false, "x:uint8[9,8]": false, "mask:int64": false, "masked:image": false,
		"x:uint8[72]": false,
	} {
		if got := MayBeMask(spec(t, text), record); got != want {
			t.Errorf("%s: mask %v, want %v", text, got, want)
		}
	}
}

const (
	crop   = `{"op":"RandomResizedCrop","size":[6]}`
	near   = `{"op":"RandomResizedCrop","size":[6],"interpolation":"nearest"}`
	flip   = `{"op":"RandomHorizontalFlip"}`
	jitter = `{"op":"ColorJitter","brightness":0.5}`
	square = `{"op":"Resize","size":[6,6]}`
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		fields, pipelines, independent string
		want                           string // "" if they are taken
	}{
		{"images:image boxes:float32[*,4]", square + "|", "", `Resize moves the field "images", and the field "boxes" (float32[*,4]) may be boxes or points in it, which would stay where they are; if so: boxes:boxes; or, if its numbers are not places in the image: independent=boxes`},
		{"images:image boxes:float32[*,4]", square + "|", "boxes", ""},
		{"images:image boxes:float32[*,4]", jitter + "|", "", ""},
		{"images:image boxes:float32[*,4]", "|", "", ""},
		{"images:image labels:int64 caption:text", flip + "||", "", ""},

		{"images:image mask:image", jitter + "," + flip + "|" + flip, "", `RandomHorizontalFlip moves the field "images", and the field "mask" draws other random numbers`},
		{"images:image mask:image", flip + "," + jitter + "|" + flip, "", ""},
		{"images:image mask:image", crop + "," + flip + "," + jitter + "|" + near + "," + flip, "", ""},
		{"images:image mask:image", crop + "|" + crop, "", `the field "mask" may be a mask, and RandomResizedCrop would make other classes of its values; if so: mask:mask; or, if it is a picture: independent=mask`},
		{"images:image mask:image", crop + "|" + crop, "mask", ""},
		{"images:image mask:image", flip + "|", "", `the field "mask" stays where it is`},
		{"images:image mask:image", "|" + flip, "", `the field "images" stays where it is`},
		{"images:image mask:image", square + "|", "", `the field "mask" stays where it is`},
		{"images:chw3x8x9 mask:uint8[8,9]", flip + "|", "", `the field "mask" stays where it is`},
		{"images:chw3x8x9 gray:chw1x8x9", jitter + "|" + jitter, "", `the field "gray" may be a mask, and ColorJitter would`},
		{"images:chw3x8x9 mask:chw1x4x4", near + "|" + near, "", "has another size"},
		{"mask:image", square, "", `the field "mask" may be a mask`},

		{"left:image right:image", flip + "," + jitter + "|" + flip + "," + jitter, "", ""},
		{"left:image right:image", flip + "|" + jitter + "," + flip, "", `the field "right" draws other random numbers`},
		{"left:image right:image", flip + "|" + jitter + "," + flip, "right", ""},
		{"left:image right:image", square + "|", "", ""},
	} {
		var fields []Field
		pipelines := strings.Split(c.pipelines, "|")
		for i, text := range strings.Fields(c.fields) {
			f := Field{Spec: spec(t, text)}
			if pipelines[i] != "" {
				f.Pipeline = compose(t, "["+pipelines[i]+"]")
			}
			fields = append(fields, f)
		}
		_, err := Check(fields, strings.Fields(c.independent), words)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %s, independent %q:\n%v\nwant %s", c.fields, c.pipelines, c.independent, err, c.want)
		}
	}
}

// Random pipelines of an image and of its mask, which has the same pixels: what Check takes moves both
// alike, or not at all. The operations draw, and some move; none changes a value.
func TestAcceptedPipelinesAgree(t *testing.T) {
	const w, h = 9, 7
	pixels := make([]byte, 3*w*h)
	for i := range w * h {
		pixels[3*i], pixels[3*i+1] = byte(i%w), byte(i/w)
	}
	info := transforms.Info{W: w, H: h, C: 3}
	ops := []string{
		flip, `{"op":"RandomVerticalFlip","p":0.5}`, near, `{"op":"RandomCrop","size":[5,5]}`,
		`{"op":"RandomCrop","size":[4,6],"pad_if_needed":true}`,
		`{"op":"RandomPosterize","bits":8,"p":0.5}`, `{"op":"RandomAdjustSharpness","sharpness_factor":1,"p":0.5}`,
		`{"op":"HorizontalFlip"}`, `{"op":"CenterCrop","size":[6,6]}`, `{"op":"RGB"}`,
		`{"op":"RandomRotation","degrees":[-30,30]}`, `{"op":"RandomAffine","degrees":[0,0],"translate":[0.3,0.3]}`,
		`{"op":"Resize","size":[8,8],"interpolation":"nearest"}`,
	}
	taken, moved := 0, 0
	for k := range *cases {
		r := rand.New(rand.NewPCG(uint64(k), 5))
		var lists [2][]string
		for range r.IntN(5) {
			op := ops[r.IntN(len(ops))]
			for i := range lists {
				if r.IntN(12) > 0 {
					lists[i] = append(lists[i], op)
				}
			}
		}
		for i := range lists {
			for range r.IntN(2) * r.IntN(3) {
				at := r.IntN(len(lists[i]) + 1)
				lists[i] = append(lists[i][:at:at], append([]string{ops[r.IntN(len(ops))]}, lists[i][at:]...)...)
			}
		}
		var got [2][]byte
		fields := []Field{{Spec: spec(t, "images:image")}, {Spec: spec(t, "mask:image")}}
		fits, changes := true, 0
		for i := range lists {
			p := compose(t, "["+strings.Join(lists[i], ",")+"]")
			fields[i].Pipeline = p
			out, err := p.Output(info)
			if err != nil {
				fits = false
				break
			}
			src, err := transforms.SourceOf(transforms.Info{W: w, H: h, C: 3}, pixels)
			require.NoError(t, err)
			got[i] = make([]byte, out.W*out.H*out.C)
			require.NoError(t, p.Runner().DoRand(got[i], src, transforms.NewRand(1, 2, uint64(k))))
			if randomly(p) {
				changes++
			}
		}
		if !fits {
			continue
		}
		if _, err := Check(fields, nil, words); err != nil {
			continue
		}
		taken++
		if changes == 0 {
			continue
		}
		moved++
		prefix := strings.Join(draws(fields[0].Pipeline), " ")
		rest := [2][]string{deterministic(fields[0].Pipeline), deterministic(fields[1].Pipeline)}
		if strings.Join(rest[0], " ") != strings.Join(rest[1], " ") {
			continue // one is cropped in another way afterwards, by no random number
		}
		if !bytes.Equal(got[0], got[1]) {
			t.Fatalf("case %d: taken, and yet they differ:\n%s\n%s\nboth draw %s", k, lists[0], lists[1], prefix)
		}
	}
	if taken < *cases/10 || moved < *cases/50 {
		t.Errorf("of %d cases, %d were taken, %d with random geometry", *cases, taken, moved)
	}
}

// deterministic returns the geometry of a pipeline after the last that is random.
func deterministic(p *transforms.Pipeline) (list []string) {
	ts := p.Transforms()
	for len(ts) > 0 && !movesRandomly(ts[len(ts)-1]) {
		if last := ts[len(ts)-1]; Of(last)&Moves != 0 {
			list = append(list, fmt.Sprintf("%T%s", last, parameters(last)))
		}
		ts = ts[:len(ts)-1]
	}
	return list
}
