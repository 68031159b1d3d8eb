package preprocess

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// fromRecipe returns the prepare.Config of a command line with the recipe of a dataset.
func fromRecipe(t *testing.T, recipe *store.Recipe, source, dest string) prepare.Config {
	t.Helper()
	text, err := json.Marshal(recipe)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "recipe.json")
	require.NoError(t, os.WriteFile(path, text, 0o666))
	f := newFlags()
	cmd := Command()
	cmd.ResetFlags()
	f.register(cmd)
	require.NoError(t, cmd.ParseFlags([]string{source, dest, "--pipeline", path}))
	require.NoError(t, f.check(cmd.Flags().Args()))
	return f.config
}

// The recipe in the manifest makes the same bytes of the same source again.
func TestRecipeRunsAgain(t *testing.T) {
	images := rawtest.Folder(t, 12)
	rawtest.Put(t, images, "dog/zz.png", []byte("words"))
	table := rawtest.Rows(t, 60)
	for name, change := range map[string]func(*prepare.Config){
		"plain": func(*prepare.Config) {},
		"noted": func(c *prepare.Config) { c.Images.Normalize, _ = prepare.ParseNormalize("dataset") },
		"applied": func(c *prepare.Config) {
			c.Images.Normalize, _ = prepare.ParseNormalize("dataset")
			c.Images.DType = tensor.Float32
		},
		"rules": func(c *prepare.Config) {
			c.Images.Rules.Orient, c.Images.Rules.RefuseAlpha, c.Images.Color, c.Images.Layout = true, true, "gray", tensor.HWC
		},
		"matte": func(c *prepare.Config) { c.Images.Rules.Alpha = imagefile.OnBlack },
		"shards": func(c *prepare.Config) {
			c.ShardBytes, c.Split, c.Stratify.Wanted, c.Dedup = 4096, []prepare.Share{{Name: "a", Share: 0.5}, {Name: "b", Share: 0.5}}, true, true
		},
		"shuffle": func(c *prepare.Config) { c.Shuffle = prepare.Seed{Set: true, Seed: 9} },
		"encoded": func(c *prepare.Config) { c.Images.Resize, c.Images.Crop, c.Images.KeepEncoded = nil, nil, true },
		"smaller": func(c *prepare.Config) {
			c.Images.Resize, c.Images.Crop, c.Images.KeepEncoded, c.Images.Quality, c.Images.LargerThan, c.Images.Fit = []int{20}, nil, true, 70, 30, "longer"
		},
		"table": func(c *prepare.Config) {
			c.Source, c.Images.Resize, c.Images.Crop, c.Fields = table, nil, nil, "label,number=square:int32"
			c.Images.Transforms = []byte(`[{"op":"Cast","field":"square","dtype":"float32"},{"op":"Scale","field":"square","factor":0.5}]`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := config(t, images)
			first.Skip = true
			change(&first)
			mustRun(t, first)
			again := fromRecipe(t, rawtest.Manifest(t, first.Dest).Recipe, first.Source, filepath.Join(t.TempDir(), "again"))
			mustRun(t, again)
			if again.Images.Rules != first.Images.Rules {
				t.Errorf("rules %+v, of the recipe %+v", first.Images.Rules, again.Images.Rules)
			}
			if !maps.Equal(foldertest.Files(t, first.Dest), foldertest.Files(t, again.Dest)) {
				t.Errorf("other bytes; recipes\n%+v\n%+v", rawtest.Manifest(t, first.Dest).Recipe, rawtest.Manifest(t, again.Dest).Recipe)
			}
		})
	}
}

// A printed pipeline is read back as the same.
func TestPrintPipeline(t *testing.T) {
	c := config(t, "x")
	c.Images.DType, c.Images.Normalize = tensor.Float32, normalizeOf(t, "imagenet")
	c.Images.Normalize.Name, c.Names = "imagenet", prepare.NamesOff
	var b bytes.Buffer
	require.NoError(t, printPipeline(&b, c))
	p, err := parsePipelineFile(b.Bytes())
	require.NoError(t, err)
	recipe, err := c.RecipeOfImages()
	require.NoError(t, err)
	options := recipe.Options
	for name := range prepare.FixedOptions {
		delete(options, name)
	}
	if !maps.Equal(p.options, options) {
		t.Errorf("options %v, want %v", p.options, options)
	}
	again := config(t, "x")
	again.Images.Transforms = p.transforms
	var b2 bytes.Buffer
	again.Images.Normalize = c.Images.Normalize
	if err := printPipeline(&b2, again); err != nil || strings.Count(b2.String(), "op:") != strings.Count(b.String(), "op:") {
		t.Errorf("%v, printed\n%s\nthen\n%s", err, &b, &b2)
	}
}

// A transform that names no field is for images; without one it would be left out, and that is an error.
func TestTransformsOfNoField(t *testing.T) {
	c := plain(t, rawtest.Rows(t, 10))
	c.Images.Transforms = []byte(`[{"op":"Cast","dtype":"float32"}]`)
	if _, err := prepare.Run(t.Context(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), `"op":"Cast"} names no field`) || !strings.Contains(err.Error(), "such as field: number") {
		t.Errorf("rows: error %v", err)
	}
	c = config(t, rawtest.Folder(t, 4))
	c.Images.Resize, c.Images.Crop = nil, nil
	c.Images.Transforms = []byte(`[{"op":"Resize","field":"images","size":[8,8]},{"op":"HorizontalFlip"}]`)
	if _, err := prepare.Run(t.Context(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), `"HorizontalFlip"} names no field`) {
		t.Errorf("images: error %v", err)
	}
}

func TestPipelineFileProblems(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "is not a YAML mapping",
		"[]":                              "is not a YAML mapping of program, decoder, options, transforms",
		"x":                               "is not a YAML mapping",
		"# nothing":                       "is not a YAML mapping",
		"--- \n":                          "is not a YAML mapping",
		"a: b\n c: d":                     "yaml: line 2: mapping values are not allowed",
		"options:\n color: x\n color: y":  `yaml: line 3: mapping key "color" already defined at line 2`,
		"options: {a: b}\n? [1]\n: 2":     "yaml: ",
		"a: &a [*a]":                      "yaml: anchor 'a' value contains itself",
		"options: []":                     "options: must be a mapping",
		"transforms: {}":                  "transforms: must be a list",
		"transforms: [Resize]":            "every entry must be a mapping",
		"options: {colr: x}":              `did you mean "color"?`,
		"pipeline: {}":                    `unknown key "pipeline"; known are`,
		"options: {}\n---\noptions: {}":   "more than one document",
		"a: &a [x]\noptions: {color: *a}": "must be one value",
	} {
		if _, err := parsePipelineFile([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// Whatever a file holds, it is read or refused.
func FuzzPipelineFile(f *testing.F) {
	for _, text := range []string{
		"options:\n  color: gray\ntransforms:\n- op: Resize\n  size: [24]\n", `{"program":"x","options":{"split":"a=1"},"transforms":[]}`,
		"transforms: [{op: Cast, field: x, dtype: float32}]", "a: &a [*a]", "options: {1: 2}", "transforms: [{op: .nan}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePipelineFile(data)
		if err != nil || p.transforms == nil {
			return
		}
		if err := prepare.CheckTransforms(p.transforms); err != nil {
			t.Fatalf("accepted, but then: %v", err)
		}
	})
}
