package preprocess

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/penstock/penstock/cmd/internal/preprocess/field"
	"github.com/penstock/penstock/cmd/internal/preprocess/part"
	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/store"
)

// recipe returns what the manifest says about how the dataset was made.
func (c Config) recipe(j *job) (*store.Recipe, error) {
	text, err := field.Recipe(j.fields, j.source)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	if !c.KeepEncoded && slices.ContainsFunc(j.source, source.Field.Image) {
		c = c.withImageDefaults()
	}
	return &store.Recipe{Program: program(), Decoder: imagefile.Backend(), Transforms: text, Options: c.options()}, nil
}

// recipeOf returns the recipe of the job: of the run that it comes from, if that is another
// one. The caller may change it.
func (r *run) recipeOf(j *job) (*store.Recipe, error) {
	if r.task.recipe == nil {
		return r.config.recipe(j)
	}
	recipe := *r.task.recipe
	recipe.Options = maps.Clone(recipe.Options)
	return &recipe, nil
}

// options returns the recipe's flags with their values, those aside that say nothing.
func (c Config) options() map[string]string {
	all := map[string]string{
		"alpha": c.AlphaName(), "exif-orientation": choose(c.Orient, "applied", "ignored"),
		"sixteen-bit": choose(c.RefuseDeep, "refused", "high-byte"), "cmyk": choose(c.RefuseCMYK, "refused", "converted"),
		"color": c.Color, "normalize": c.Normalize.Name, "normalize-split": c.NormalizeSplit, "max-pixels": strconv.Itoa(c.MaxPixels), "on-error": choose(c.Skip, "skip", "fail"),
		"from": choose(c.From == "auto", "", c.From), "fields": c.Fields, "keep-encoded": choose(c.KeepEncoded, "true", ""),
		"jpeg-quality": choose(c.Shrinks(), strconv.Itoa(c.JPEGQuality()), ""), "larger-than": choose(c.LargerThan != 0, strconv.Itoa(c.LargerThan), ""),
		"split": splitText(c.Split), "stratify": choose(c.Stratify, "true", ""), "shuffle": c.Shuffle.String(),
		"names": choose(c.Names == namesAuto, "", c.Names),
		"dedup": choose(c.Dedup, "true", ""), "max-errors": c.MaxErrors.String(),
		"shard-size": choose(c.ShardBytes != 0 && c.format() == part.Flat, strconv.FormatInt(c.ShardBytes, 10), ""),
	}
	maps.Copy(all, c.Compress.options())
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	maps.Copy(all, fixedOptions)
	return all
}

// choose returns yes or no.
func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
