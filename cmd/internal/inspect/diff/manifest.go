package diff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
)

// manifests compares what the manifests say besides fields: meaning of values, splits, statistics,
// recipes. Statistics and splits are of all records, so they are left out if a split was selected.
func (c *Comparison) manifests(opts Options) {
	a, b := c.a.manifest, c.b.manifest
	for _, side := range []struct {
		path string
		m    *store.Manifest
	}{{c.A, a}, {c.B, b}} {
		if side.m == nil {
			c.Notes = append(c.Notes, fmt.Sprintf("%s has no manifest of penstock: layouts, classes, splits, statistics and "+
				"recipes are not compared", side.path))
		}
	}
	if a == nil || b == nil {
		return
	}
	for _, p := range c.paired() {
		c.meanings(p.a, p.b)
		if !opts.Data && opts.Split == "" {
			c.statistics(p.a.Name, a.Statistics[p.a.Name], b.Statistics[p.b.Name], opts.Tolerance)
		}
	}
	if opts.Split == "" {
		c.splits(a, b)
	}
	if !opts.Data {
		c.recipes(a.Recipe, b.Recipe)
		c.differ("skipped", "", units.Counted(int64(len(a.Skipped)), "sample"),
			units.Counted(int64(len(b.Skipped)), "sample"))
	}
}

// meanings compares what the values of a field stand for.
func (c *Comparison) meanings(a, b store.Field) {
	c.differ("layout", a.Name, a.Layout, b.Layout)
	c.differ("normalization", a.Name, jsonText(a.Normalization), jsonText(b.Normalization))
	for i := range max(len(a.Classes), len(b.Classes)) {
		x, y := dataset.ClassName(a, int64(i)), dataset.ClassName(b, int64(i))
		if x != y || i >= min(len(a.Classes), len(b.Classes)) {
			c.differ("classes", a.Name, classText(a, i), classText(b, i))
			return
		}
	}
}

// classText describes class i of a field for a Difference.
func classText(f store.Field, i int) string {
	if i >= len(f.Classes) {
		return fmt.Sprintf("%d classes", len(f.Classes))
	}
	return fmt.Sprintf("class %d is %q", i, f.Classes[i])
}

// splits compares which records are in which split.
func (c *Comparison) splits(a, b *store.Manifest) {
	x, errA := a.LiveSplits()
	y, errB := b.LiveSplits()
	if err := errors.Join(errA, errB); err != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("splits are not compared: %v", err))
	} else if !c.sameSplits(x, y) {
		c.Differences = append(c.Differences, Difference{What: "splits", A: splitsText(x), B: splitsText(y)})
	}
}

// splitsText describes splits for a Difference.
func splitsText(splits []store.Split) string {
	texts := dataset.Map(splits, func(s store.Split) string { return fmt.Sprintf("%s %v", s.Name, s.Ranges) })
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// jsonText returns a text that is the same for equal values.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// statistics compares the statistics of a field, and reports the first number that differs.
func (c *Comparison) statistics(field string, a, b *store.Statistics, tolerance float64) {
	if a == nil || b == nil {
		c.differ("statistics", field, isThere(a != nil), isThere(b != nil))
		return
	}
	x, y := figuresOf(a), figuresOf(b)
	for i := range min(len(x), len(y)) {
		if x[i].name != y[i].name || math.Abs(x[i].value-y[i].value) > tolerance {
			c.differ("statistics", field, x[i].String(), y[i].String())
			return
		}
	}
	c.differ("statistics", field, fmt.Sprintf("%d numbers", len(x)), fmt.Sprintf("%d numbers", len(y)))
}

// isThere describes the presence of a part of the manifest.
func isThere(ok bool) string {
	if ok {
		return "there"
	}
	return "not there"
}

// figure is one number of the statistics.
type figure struct {
	name  string
	value float64
}

// String writes the value with all digits, so that different values are different texts.
func (f figure) String() string { return f.name + " " + strconv.FormatFloat(f.value, 'g', -1, 64) }

// figuresOf lists the numbers of statistics in a fixed order.
func figuresOf(s *store.Statistics) []figure {
	out := momentFigures("", s.Moments)
	for i, m := range s.Channels {
		out = append(out, momentFigures(dataset.ChannelName(i, len(s.Channels))+" ", m)...)
	}
	if s.Lengths != nil {
		out = append(out, momentFigures("length ", *s.Lengths)...)
	}
	for i, n := range s.Labels {
		out = append(out, figure{fmt.Sprintf("records of class %d", i), float64(n)})
	}
	return out
}

// momentFigures lists the numbers of moments, with a prefix for their names.
func momentFigures(prefix string, m store.Moments) []figure {
	return []figure{
		{prefix + "min", m.Min}, {prefix + "max", m.Max}, {prefix + "mean", m.Mean}, {prefix + "std", m.Std},
		{prefix + "not finite", float64(m.NonFinite)},
	}
}

// recipes compares how the datasets were made. The size of shards is left out, as it changes no
// value.
func (c *Comparison) recipes(a, b *store.Recipe) {
	if a == nil || b == nil {
		c.differ("recipe", "", isThere(a != nil), isThere(b != nil))
		return
	}
	c.differ("recipe: program", "", a.Program, b.Program)
	c.differ("recipe: decoder", "", a.Decoder, b.Decoder)
	c.differ("recipe: transforms", "", compactJSON(a.Transforms), compactJSON(b.Transforms))
	names := maps.Clone(a.Options)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, b.Options)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name != "shard-size" {
			c.differ("recipe: "+name, "", optionText(a.Options, name), optionText(b.Options, name))
		}
	}
}

// optionText describes an option of a recipe for a Difference.
func optionText(options map[string]string, name string) string {
	if value, ok := options[name]; ok {
		return value
	}
	return "not set"
}

// compactJSON returns JSON without spaces, so that only its content counts.
func compactJSON(text []byte) string {
	var b bytes.Buffer
	if len(text) == 0 {
		return "none"
	}
	if err := json.Compact(&b, text); err != nil {
		return string(text)
	}
	return b.String()
}
