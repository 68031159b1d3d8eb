package transforms

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// A parameter of zero is zero, or an error, and never the default.
func TestZeroIsZero(t *testing.T) {
	for _, op := range []string{"RandomHorizontalFlip", "RandomVerticalFlip", "RandomGrayscale", "RandomInvert",
		"RandomSolarize", "RandomAutocontrast", "RandomEqualize"} {
		checkUnchanged(t, `[{"op":"`+op+`","p":0}]`)
	}
	for _, recipe := range []string{
		`[{"op":"RandomPosterize","bits":1,"p":0}]`,
		`[{"op":"RandomAdjustSharpness","sharpness_factor":3,"p":0}]`,
		`[{"op":"RandomPerspective","p":0}]`,
		`[{"op":"RandomPerspective","p":1,"distortion_scale":0}]`,
		`[{"op":"RandomErasing","p":0,"value":7}]`,
		`[{"op":"RandAugment","num_ops":0}]`,
		`[{"op":"ColorJitter","brightness":0,"contrast":0,"saturation":0,"hue":0}]`,
		`[{"op":"RandomRotation","degrees":0}]`,
		`[{"op":"RandomAffine","degrees":0,"translate":[0,0],"shear":0}]`,
		`[{"op":"ElasticTransform","alpha":0,"sigma":0.5}]`,
	} {
		checkUnchanged(t, recipe)
	}
	for recipe, want := range map[string]string{
		`[{"op":"AugMix","alpha":0}]`:                           "alpha 0 must be positive",
		`[{"op":"AugMix","severity":0}]`:                        "severity 0 must be 1 to 10",
		`[{"op":"AugMix","mixture_width":0}]`:                   "mixture_width 0 must be 1",
		`[{"op":"RandAugment","num_magnitude_bins":0}]`:         "num_magnitude_bins 0 2 or more",
		`[{"op":"TrivialAugmentWide","num_magnitude_bins":0}]`:  "num_magnitude_bins 0 must be 2",
		`[{"op":"Grayscale","num_output_channels":0}]`:          "num_output_channels 0 must be one of 1, 3",
		`[{"op":"Img2Dataset","image_size":0}]`:                 "image_size 0 must be 1 to 1048576",
		`[{"op":"RandomPosterize"}]`:                            "bits 0 must be 1 to 8",
		`[{"op":"Resize","size":0}]`:                            "size [0]",
		`[{"op":"Resize","size":8,"interpolation":""}]`:         "interpolation is empty; for its default, leave it out",
		`[{"op":"AutoAugment","policy":""}]`:                    "policy is empty",
		`[{"op":"RandomAffine","degrees":3,"shear":[]}]`:        "shear is empty",
		`[{"op":"ColorJitter","hue":[]}]`:                       "hue is empty",
		`[{"op":"GaussianBlur","kernel_size":3,"sigma":0}]`:     "sigma [0 0]",
		`[{"op":"RandomHorizontalFlip","p":-0.1}]`:              "p -0.1 must be 0 to 1",
		`[{"op":"RandomHorizontalFlip","p":[0.5]}]`:             "it must be a number",
		`[{"op":"ResizeKeepRatio","size":[0,4],"longest":0}]`:   "size [0 4]",
		`[{"op":"RandomResizedCrop","size":4,"scale":[0,0.5]}]`: "scale [0 0.5]",
	} {
		if _, err := Parse([]byte(recipe)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", recipe, err, want)
		}
	}
}

// checkUnchanged tries 20 draws of a pipeline that must leave images as they are.
func checkUnchanged(t *testing.T, recipe string) {
	t.Helper()
	p, err := Parse([]byte(recipe))
	if err != nil {
		t.Errorf("%s: %v", recipe, err)
		return
	}
	src := testImage(13, 9, 3)
	dst := make([]byte, len(src.Pix))
	for record := range uint64(20) {
		rnd := NewRand(1, 0, record)
		if err := p.Runner().DoRand(dst, src, rnd); err != nil {
			t.Fatalf("%s: %v", recipe, err)
		}
		if string(dst) != string(src.Pix) {
			t.Errorf("%s changes the image", recipe)
			return
		}
	}
}

// Scale by 0 leaves the offset.
func TestScaleByZero(t *testing.T) {
	p, err := ParseArray([]byte(`[{"op":"Scale","factor":0,"offset":3}]`))
	require.NoError(t, err)
	if got, err := p.MarshalJSON(); err != nil || string(got) != `[{"op":"Scale","factor":0,"offset":3}]` {
		t.Errorf("%s, %v", got, err)
	}
	x := []float64{1, 2}
	p.ts[0].Apply(x, 0, tensor.Spec{DType: tensor.Float64})
	if x[0] != 3 || x[1] != 3 {
		t.Errorf("%v", x)
	}
}
