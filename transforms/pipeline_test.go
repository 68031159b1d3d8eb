package transforms

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

func mustCompose(t testing.TB, ts ...Transform) *Pipeline {
	t.Helper()
	p, err := Compose(ts...)
	require.NoError(t, err)
	return p
}

// TestGeometry holds the sizes that torchvision gives.
func TestGeometry(t *testing.T) {
	tests := []struct {
		t          Transform
		w, h       int
		outW, outH int
	}{
		{Resize{Size: []int{256}}, 500, 375, 341, 256},
		{Resize{Size: []int{256}}, 500, 331, 386, 256},
		{Resize{Size: []int{256}}, 331, 500, 256, 386},
		{Resize{Size: []int{256}}, 100, 100, 256, 256},
		{Resize{Size: []int{256}, MaxSize: 300}, 500, 331, 300, 198},
		{Resize{Size: []int{10, 20}}, 500, 375, 20, 10},
		{Resize{Size: []int{100}, Fit: "longer"}, 500, 331, 100, 66},
		{Resize{Size: []int{100}, Fit: "longer"}, 331, 500, 66, 100},
		{Resize{Size: []int{224}, Fit: "exact"}, 500, 375, 224, 224},
		{Resize{Size: []int{224}, Fit: "cover"}, 500, 375, 224, 224},
		{Resize{Size: []int{10, 300}, Fit: "cover"}, 500, 375, 300, 10},
		{Resize{Size: []int{224}, Fit: "pad"}, 500, 375, 224, 224},
		{Resize{Size: []int{30, 20}, Fit: "pad"}, 1, 999, 20, 30},
		{CenterCrop{Size: []int{224}}, 341, 256, 224, 224},
		{CenterCrop{Size: []int{30, 400}}, 341, 256, 400, 30},
		{Pad{Padding: []int{3}}, 5, 6, 11, 12},
		{Pad{Padding: []int{1, 2}}, 5, 6, 7, 10},
		{Pad{Padding: []int{1, 2, 3, 4}}, 5, 6, 9, 12},
		{Crop{Top: 1, Left: 2, Height: 3, Width: 2}, 5, 6, 2, 3},
	}
	for _, tt := range tests {
		out, err := mustCompose(t, tt.t).Output(Info{W: tt.w, H: tt.h, C: 3})
		if err != nil || out.W != tt.outW || out.H != tt.outH || out.C != 3 {
			t.Errorf("%+v of %dx%d: %+v, %v; want %dx%d", tt.t, tt.w, tt.h, out, err, tt.outW, tt.outH)
		}
	}
}

// TestCropOffset holds int(round((d-crop)/2)), halves to even.
func TestCropOffset(t *testing.T) {
	for _, tt := range []struct{ d, crop, want int }{{343, 224, 60}, {341, 224, 58}, {256, 224, 16}, {225, 224, 0},
		{227, 224, 2}, {5, 5, 0}} {
		if got := centered(tt.d, 9, tt.crop, 9).Min.X; got != tt.want {
			t.Errorf("crop %d of %d begins at %d, want %d", tt.crop, tt.d, got, tt.want)
		}
	}
}

func TestOutputDeclares(t *testing.T) {
	p := mustCompose(t, ToLayout{CHW}, Resize{Size: []int{256}}, Grayscale{Channels: new(3)}, CenterCrop{Size: []int{224}},
		ConvertDType{DType: tensor.Float16}, Normalize{Mean: []float64{.5}, Std: []float64{.5}})
	out, err := p.Output(Info{W: 500, H: 375, C: 3})
	require.NoError(t, err)
	if out.String() != "float16 (3, 224, 224)" || out.Bytes() != 3*224*224*2 {
		t.Errorf("%v, %d bytes", out, out.Bytes())
	}
	gray, err := mustCompose(t, Grayscale{}).Output(Info{W: 4, H: 3, C: 3})
	if err != nil || gray.String() != "uint8 (3, 4, 1)" {
		t.Errorf("%v, %v", gray, err)
	}
}

func TestComposeReportsEverything(t *testing.T) {
	_, err := Compose(
		Resize{Size: []int{0}, Interpolation: "bilinaer", PassOrder: "vertical"},
		Resize{Size: []int{1}, Fit: "covr"},
		CenterCrop{},
		Pad{Padding: []int{1, 2, 3}},
		Normalize{Mean: []float64{1, 2}, Std: []float64{1, 0}},
		ConvertDType{DType: tensor.Int64},
		Grayscale{Channels: new(2)},
		RandomHorizontalFlip{P: new(2.0)},
		RandomResizedCrop{Scale: []float64{2, 1}, Ratio: []float64{0, 1}, Interpolation: "area"},
		RandomCrop{Size: []int{3}, Padding: []int{1, 2, 3}},
		RandomRotation{Degrees: []float64{-3}, Interpolation: "lanczos"},
		RandomAffine{Degrees: []float64{3}, Translate: []float64{2, 0}, Scale: []float64{0, 1}, Shear: []float64{1, 2, 3}},
		ColorJitter{Brightness: []float64{-1}, Contrast: []float64{2, 1}, Hue: []float64{.6}, Saturation: []float64{1, 2, 3}},
		RandomPosterize{},
		RandomSolarize{Threshold: 256},
		RandomAdjustSharpness{Factor: -1},
		AutoAugment{Policy: "cifar"},
		RandomPerspective{Distortion: new(2.0)},
		RandAugment{Bins: new(5)},
		TrivialAugmentWide{Bins: new(1)},
		RandomErasing{Value: []float64{1, 2}},
		Rotate{Angle: math.NaN()},
		CornerCrop{Size: []int{1}, Corner: "top"},
		Img2Dataset{Mode: "bordr", Upscale: "aria"},
		GaussianBlur{KernelSize: 4, Sigma: []float64{0, 1}},
		Blur{},
		AdjustBrightness{Percentage: 101},
		Fit{},
		Fill{Size: []int{3}, Anchor: "centr"},
	)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"transform Resize: ", "size [0]", `unknown filter "bilinaer"`, `did you mean "cover"`,
		`pass_order "vertical" must be one of auto, horizontal`, "transform CenterCrop: ",
		"transform Pad: ", "transform Normalize: ", "transform ConvertDType: dtype int64", "transform Grayscale: ",
		"transform RandomHorizontalFlip: p 2",
		"scale [2 1]", "ratio [0 1]", `unknown filter "area"`, "padding [1 2 3]", "degrees [-3]",
		`"lanczos" must be one of nearest, bilinear, bicubic`,
		"translate [2 0]", "scale [0 1]", "shear [1 2 3]", "brightness -1", "contrast [2 1]", "hue [-0.6 0.6]",
		"saturation [1 2 3]", "bits 0",
		"threshold 256", "sharpness_factor -1", "magnitude 9", "num_magnitude_bins 1", "value [1 2]",
		"angle NaN", `corner "top" must be one of top-left`, `did you mean "border"`, `unknown filter "area"`, "kernel_size 4", "sigma [0 1]",
		"transform Blur: sigma 0", "percentage 101", "transform Fit: size []", `did you mean "center"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

func TestOutputErrors(t *testing.T) {
	f32 := ConvertDType{DType: tensor.Float32}
	tests := []struct {
		ts   []Transform
		want string
	}{
		{[]Transform{Crop{Left: 3, Height: 2, Width: 3}}, "transform Crop: rectangle (3,0)-(6,2) leaves the input of 5x4 pixels"},
		{[]Transform{f32, Resize{Size: []int{2}}}, "transform Resize: input is not uint8 any more"},
		{[]Transform{f32, Pad{Padding: []int{1}}}, "transform Pad: input is not uint8 any more"},
		{[]Transform{f32, Grayscale{}}, "transform Grayscale: input is not uint8 any more"},
		{[]Transform{f32, ConvertDType{DType: tensor.Float16}}, "transform ConvertDType: input is float32 already"},
		{[]Transform{Normalize{Mean: []float64{0}, Std: []float64{1}}}, "transform Normalize: input is uint8"},
		{[]Transform{Grayscale{}, f32, Normalize{Mean: []float64{0, 0, 0}, Std: []float64{1, 1, 1}}}, "3 means for an input of 1 channels"},
		{[]Transform{Resize{Size: []int{3, 1000}}, Resize{Size: []int{100}, Fit: "longer"}}, "transform Resize: input of 1000x3 pixels would become 100x0"},
		{[]Transform{Resize{Size: []int{1 << 20, 1 << 9}}, Pad{Padding: []int{1}}}, "transform Resize: input of 5x4 pixels would become 512x1048576, more than 268435456 pixels"},
		{[]Transform{Resize{Size: []int{1 << 14, 1 << 14}}, Pad{Padding: []int{1}}}, "transform Pad: input of 16384x16384 pixels would become 16386x16386"},
		{[]Transform{RandomCrop{Size: []int{6}}}, "transform RandomCrop: input of 5x4 pixels is smaller than 6x6"},
		{[]Transform{f32, RandAugment{}}, "transform RandAugment: input is not uint8 any more"},
		{[]Transform{f32, RandomInvert{}}, "transform RandomInvert: input is not uint8 any more"},
		{[]Transform{Pad{Padding: []int{4, 0}, Mode: PadReflect}}, ""},
		{[]Transform{Pad{Padding: []int{500, 0}, Mode: PadReflect}}, ""},
	}
	for _, tt := range tests {
		_, err := mustCompose(t, tt.ts...).Output(Info{W: 5, H: 4, C: 3})
		if tt.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v; want %q", tt.ts, err, tt.want)
		}
	}
	for _, in := range []Info{{}, {W: 1, H: 1, C: 2}, {W: -1, H: 1, C: 1}, {W: 1, H: 1 << 21, C: 1},
		{W: 1, H: 1, C: 3, Layout: CHW}} {
		if out, err := mustCompose(t).Output(in); err == nil {
			t.Errorf("input %+v gives %v", in, out)
		}
	}
}

// allOps has a transform of each registered kind.
var allOps = []Transform{
	Resize{Size: []int{256}},
	Resize{Size: []int{200, 300}, Interpolation: "lanczos"},
	Resize{Size: []int{128}, Fit: "pad", Fill: []int{1, 2, 3}},
	Resize{Size: []int{64}, MaxSize: 100},
	CenterCrop{Size: []int{60}},
	Crop{Top: 1, Left: 2, Height: 50, Width: 40},
	Pad{Padding: []int{2, 1}, Mode: PadReflect},
	RandomHorizontalFlip{},
	RandomVerticalFlip{P: new(0.25)},
	RandomResizedCrop{Size: []int{32, 48}},
	RandomCrop{Size: []int{24}, Padding: []int{4}},
	RandomRotation{Degrees: []float64{30}, Interpolation: "bilinear"},
	RandomAffine{Degrees: []float64{10, 20}, Translate: []float64{.1, .2}, Scale: []float64{.5, 2}, Shear: []float64{5}},
	ColorJitter{Brightness: []float64{.4}, Contrast: []float64{.4}, Saturation: []float64{.1, 3}, Hue: []float64{.1}},
	RandomGrayscale{},
	RandomInvert{},
	RandomPosterize{Bits: 3},
	RandomSolarize{Threshold: 100},
	RandomAdjustSharpness{Factor: 2},
	RandomAutocontrast{},
	RandomEqualize{},
	AutoAugment{Policy: "svhn"},
	RandomPerspective{P: new(1.0)},
	ElasticTransform{Sigma: []float64{3}},
	RandAugment{},
	TrivialAugmentWide{},
	AugMix{},
	HorizontalFlip{},
	VerticalFlip{},
	CornerCrop{Size: []int{22}, Corner: "bottom-left"},
	Img2Dataset{},
	GaussianBlur{KernelSize: 5},
	Rotate{Angle: 10},
	Blur{Sigma: 1},
	Sharpen{Sigma: 1},
	AdjustGamma{Gamma: .7},
	AdjustBrightness{Percentage: 10},
	AdjustContrast{Percentage: 10},
	AdjustSaturation{Percentage: 10},
	Fit{Size: []int{200}},
	Fill{Size: []int{20, 30}, Anchor: "top"},
	Grayscale{Channels: new(3)},
	RGB{},
	ToLayout{CHW},
	ConvertDType{DType: tensor.BFloat16},
	Normalize{Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}},
	RandomErasing{},
	RandomErasing{Mode: "pixel"},
	ResizeKeepRatio{Size: []int{200}, Longest: .5},
	CenterCropOrPad{Size: []int{30, 70}, Fill: []int{9, 8, 7}},
	LinearTransformation{Matrix: [][]float64{{1, 2}, {3, 4}}, Mean: []float64{5, 6}},
	ToTensor{},
	PILToTensor{},
	ToImage{},
	ToDtype{DType: tensor.Float32, Scale: true},
	ConvertImageDtype{DType: tensor.Float32},
	RandomZoomOut{P: new(1.0)},
	RandomIoUCrop{Options: []float64{.5}},
	ScaleJitter{Target: []int{40, 30}},
	RandomShortestSize{MinSize: []int{20, 30}, MaxSize: 40},
	RandomResize{MinSize: 20, MaxSize: 30},
	LabelOptions{MaskFill: new(255), MaskResize: "nearest"},
	ClampBoundingBoxes{},
	SanitizeBoundingBoxes{},
	ClampKeyPoints{},
	SanitizeKeyPoints{},
	ConvertBoundingBoxFormat{Format: "XYXY"},
	FixedSizeCrop{Size: []int{20, 30}, Fill: []int{4}, Mode: PadReflect},
}

func TestRecipeRoundTrip(t *testing.T) {
	p := mustCompose(t, allOps...)
	a, err := json.Marshal(p)
	require.NoError(t, err)
	q, err := Parse(a)
	require.NoError(t, err)
	b, err := json.Marshal(q)
	require.NoError(t, err)
	if string(a) != string(b) {
		t.Errorf("was\n%s\nis\n%s", a, b)
	}
	for _, op := range Ops() {
		if op == "Threshold" { // of an example
			continue
		}
		if !slices.ContainsFunc(allOps, func(t Transform) bool { return opName(t) == op }) {
			t.Errorf("%s is not tested", op)
		}
	}
}

func TestRecipeIsExplicit(t *testing.T) {
	p := mustCompose(t, Resize{Size: []int{256}}, CenterCrop{Size: []int{224}}, ToLayout{CHW})
	got, err := json.Marshal(p)
	require.NoError(t, err)
	want := `[{"op":"Resize","size":[256],"fit":"shorter","max_size":0,"interpolation":"bilinear","pass_order":"auto","fill":[0],"antialias":true},` +
		`{"op":"CenterCrop","size":[224,224]},{"op":"ToLayout","layout":"chw"}]`
	if string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ recipe, want string }{
		{`{}`, "not a JSON list"},
		{`[{"size":[1]}]`, `recipe entry 1: no "op"`},
		{`[3]`, `recipe entry 1: `},
		{`[{"op":"Resise","size":[1]}]`, `recipe entry 1: unknown transform "Resise"; did you mean "Resize"?`},
		{`[{"op":"x"}]`, `unknown transform "x"; known are `},
		{`[{"op":"Resize","size":"a"}]`, `recipe entry 1: transform Resize: size is a string; it must be a list, each a whole number`},
		{`[{"op":"RGB"},{"op":"Resize","siz":[1]}]`, `recipe entry 2: transform Resize: unknown parameter "siz"; did you mean "size"?`},
		{`[{"op":"Resize","Size":[1]}]`, `unknown parameter "Size"; did you mean "size"?`},
		{`[{"op":"RGB","a":1}]`, `unknown parameter "a"; there are none`},
		{`[{"op":"Resize","size":[256],"antialias":false}]`, "antialias cannot be false"},
		{`[{"op":"Resize","size":[-1]},{"op":"CenterCrop"}]`, "recipe entry 2: transform CenterCrop"},
		{`[{"op":"ToLayout","layout":"nchw"}]`, `unknown layout "nchw"`},
		{`[{"op":"Pad","padding":[1],"padding_mode":"reflekt"}]`, `did you mean "reflect"`},
		{`[{"op":"ConvertDType","dtype":"float"}]`, `unknown dtype "float"`},
	}
	for _, tt := range tests {
		if _, err := Parse([]byte(tt.recipe)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.recipe, err, tt.want)
		}
	}
}

// A number stands for a list of one.
func TestParseNumberForList(t *testing.T) {
	p, err := Parse([]byte(`[{"op":"Resize","size": 256},{"op":"Pad","padding":[1],"fill":7},{"op":"RandomRotation","degrees":30}]`))
	require.NoError(t, err)
	want := mustCompose(t, Resize{Size: []int{256}}, Pad{Padding: []int{1}, Fill: []int{7}},
		RandomRotation{Degrees: []float64{30}})
	a, errA := json.Marshal(p)
	b, errB := json.Marshal(want)
	if string(a) != string(b) || errA != nil || errB != nil {
		t.Errorf("%s, %v; want %s, %v", a, errA, b, errB)
	}
	if _, err := ParseArray([]byte(`[{"op":"Standardize","mean":-1.5,"std":2}]`)); err != nil {
		t.Error(err)
	}
}

// FuzzParse holds that what Parse accepts survives a round trip and never panics later.
func FuzzParse(f *testing.F) {
	seed, err := json.Marshal(&Pipeline{ts: allOps})
	require.NoError(f, err)
	f.Add(seed)
	f.Add([]byte(`[{"op":"Resize","size":[3],"fit":"cover"},{"op":"Pad","padding":[1,2,3,4]}]`))
	f.Fuzz(func(t *testing.T, recipe []byte) {
		p, err := Parse(recipe)
		if err != nil {
			return
		}
		a, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%s: %v", recipe, err)
		}
		q, err := Parse(a)
		if err != nil {
			t.Fatalf("%s: %v", a, err)
		}
		if b, _ := json.Marshal(q); string(a) != string(b) {
			t.Fatalf("%s became %s", a, b)
		}
		src := testImage(9, 7, 3)
		for i := range p.ts { // an image that is large in between takes time
			out, err := (&Pipeline{ts: p.ts[:i+1]}).Output(InfoOf(src))
			if err != nil || out.Bytes() > 1<<16 {
				return
			}
		}
		out, err := p.Output(InfoOf(src))
		if err != nil {
			return
		}
		if err := p.Runner().DoRand(make([]byte, out.Bytes()), src, Rand{}); err != nil {
			t.Fatalf("%s: %v", a, err)
		}
	})
}

// A transform of one's own resizes by any filter, as Resize does.
func TestPlanResize(t *testing.T) {
	m := testImage(30, 20, 3)
	for _, name := range []string{"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"} {
		f, err := ParseInterpolation(name)
		require.NoError(t, err)
		got := apply(t, m, do(func(p *Plan) error { return p.Resize(13, 7, f) }))
		if want := apply(t, m, Resize{Size: []int{7, 13}, Fit: "exact", Interpolation: name}); !slices.Equal(got, want) {
			t.Errorf("%s: other pixels than those of Resize", name)
		}
	}
	if f, err := ParseInterpolation("cubic"); err == nil || !strings.Contains(err.Error(), "hamming, bicubic, lanczos") {
		t.Errorf("%v, %v", f, err)
	}
}

func TestPassOrder(t *testing.T) {
	tall := testImage(31, 200, 3)
	for op, ts := range map[string][2]Transform{
		"Fit":         {Fit{Size: []int{30}, Interpolation: "lanczos"}, Fit{Size: []int{30}, Interpolation: "lanczos", PassOrder: "horizontal"}},
		"Fill":        {Fill{Size: []int{100, 20}}, Fill{Size: []int{100, 20}, PassOrder: "horizontal"}},
		"Img2Dataset": {Img2Dataset{ImageSize: new(20), Mode: "fixed", Downscale: "lanczos"}, Img2Dataset{ImageSize: new(20), Mode: "fixed", Downscale: "lanczos", PassOrder: "horizontal"}},
		"Resize":      {Resize{Size: []int{60, 30}}, Resize{Size: []int{60, 30}, PassOrder: "horizontal"}},
	} {
		if bytes.Equal(apply(t, tall, ts[0]), apply(t, tall, ts[1])) {
			t.Errorf("%s: the pass order changes nothing", op)
		}
	}
}
