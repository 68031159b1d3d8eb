package prepare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// complete returns the summary of a dataset that an earlier run has finished. --resume finds such a dataset if that run
// was stopped after its last step. It returns nil if there is no dataset. A dataset that was built in another way is an
// error, as --resume cannot end in it.
func complete(c setup) (*Summary, error) {
	if !c.Resume || c.Overwrite {
		return nil, nil
	}
	if c.Append {
		return producedAppend(c)
	}
	if _, err := os.Lstat(c.Dest); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m, err := openManifest(c.Dest)
	if err != nil {
		return nil, nil // the caller reports that it exists
	}
	if c.producer != nil && m.Source != nil && m.Source.Inputs != "" && c.producer.Begin.Inputs != "" &&
		m.Source.Inputs != c.producer.Begin.Inputs {
		return nil, fmt.Errorf("%s %w already, built from other inputs, or of these in another order; choose another name, "+
			"or use --overwrite", c.Dest, store.ErrExist)
	}
	if list := c.differences(m); list != nil {
		return nil, madeOtherwise(c.Dest, list)
	}
	return c.found(m, infoOf(m))
}

// producedAppend returns the summary of a dataset whose last append had the inputs of the producer, so that a repeated
// append adds nothing. Samples of a producer without a digest of its inputs may be the same ones again or not: they are
// appended.
func producedAppend(c setup) (*Summary, error) {
	if c.producer == nil || c.producer.Begin.Inputs == "" || write.Unfinished(c.Dest) {
		return nil, nil
	}
	m, err := baseManifest(c)
	if err != nil || m.Source == nil || m.Source.Inputs != c.producer.Begin.Inputs {
		return nil, nil // the caller reports what is wrong
	}
	return c.describe(m, infoOf(m))
}

// Describe returns the summary of the dataset at c.Dest, which is complete, as [Run] does with Resume. It accepts a
// dataset of another version or of a source with another name.
func Describe(c Config) (*Summary, error) {
	m, err := openManifest(c.Dest)
	if err != nil {
		return nil, err
	}
	if m.Source == nil {
		return nil, fmt.Errorf("%s: its manifest does not state its source", c.Dest)
	}
	return setup{Config: c}.found(m, infoOf(m))
}

// infoOf describes the source of a dataset by the dataset's manifest.
func infoOf(m *store.Manifest) source.Info {
	info := source.Info{Kind: m.Source.Kind, Unit: "samples"}
	stored := slices.Contains([]string{"flat", "hdf5", "zarr", "view"}, info.Kind)
	for _, f := range m.Fields {
		info.Fields = append(info.Fields, source.Field{Field: f, Stored: stored})
	}
	return info
}

// completeHint is the hint in the summary of a dataset that existed already.
const completeHint = "it was complete already; nothing was left to do"

// found returns the summary of a dataset that is complete, and removes the files next to it that the run which built it
// has left.
func (c setup) found(m *store.Manifest, info source.Info) (*Summary, error) {
	err := tidy(c.Dest)
	if c.Shuffle.Set {
		err = errors.Join(err, (&collection{run: &run{setup: c}}).remove())
	}
	if err != nil {
		return nil, err
	}
	return c.describe(m, info)
}

// describe returns the summary of a dataset that is complete.
func (c setup) describe(m *store.Manifest, info source.Info) (*Summary, error) {
	r := &run{setup: c, log: newRunLog(c.Config), info: info}
	r.info.Hints = []string{completeHint}
	r.log.restoreFrom(m)
	return r.summary(m, 0)
}

// tidy removes the files next to an existing dataset that belong to a process which was killed after it had published
// the dataset.
func tidy(path string) error {
	if err := write.CheckDest(path, write.StageOptions{}); !errors.Is(err, store.ErrExist) {
		return err
	}
	return nil
}

// restoreFrom sets the counts of the log to the counts in the manifest of a complete dataset.
func (b *runLog) restoreFrom(m *store.Manifest) {
	b.samples, b.bytes = m.Source.Samples, m.Source.Bytes
	for _, s := range m.Skipped {
		b.skipped = append(b.skipped, samples.Skipped{Sample: s.Sample, Kind: "skipped before", Reason: s.Reason})
		b.kinds["skipped before"]++
	}
}

// differences lists how a dataset differs from the dataset that this Config would build from a source
// with that name; the list is empty if both are the same.
func (c Config) differences(m *store.Manifest) (list []string) {
	add := func(what, was, is string) {
		if was != is {
			list = append(list, fmt.Sprintf("%s: %s there, %s now", what, part.Clipped(cmp.Or(was, "none")),
				part.Clipped(cmp.Or(is, "none"))))
		}
	}
	if m.Recipe == nil || m.Source == nil {
		return []string{"it says not how it was made"}
	}
	c.Images = c.Images.For(infoOf(m).Fields, nil)
	path, err := filepath.Abs(c.Source)
	if err != nil {
		return []string{err.Error()}
	}
	add("source", m.Source.Name, filepath.Base(path))
	add("version", m.Recipe.Program, program())
	add("decoder", m.Recipe.Decoder, imagefile.Backend())
	if names := m.SplitNames(); c.Images.Normalize.Dataset && c.NormalizeSplit == "" && len(names) > 0 {
		c.NormalizeSplit = trainingSplit(names)
	}
	options := c.options() // of a source of arrays
	if images := c.withImageDefaults().options(); m.Recipe.Options["color"] != "" {
		options = images
	}
	for _, key := range slices.Sorted(maps.Keys(m.Recipe.Options)) {
		add("--"+key, m.Recipe.Options[key], options[key])
	}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if _, ok := m.Recipe.Options[key]; !ok {
			add("--"+key, "", options[key])
		}
	}
	if c.Images.Transforms == nil && !c.Images.Normalize.Dataset && m.Recipe.Transforms != nil {
		was, is := stepsOf(m.Recipe.Transforms), c.steps()
		add("transforms", namesOf(was), namesOf(is))
		for k := range min(len(was), len(is)) {
			for _, key := range slices.Sorted(maps.Keys(is[k])) {
				if namesOf(was) == namesOf(is) {
					add(is[k]["op"]+" "+key, was[k][key], is[k][key])
				}
			}
		}
	}
	return list
}

// step is a transform of a recipe: its members as JSON, but for "op", which is its name.
type step map[string]string

// steps returns the transforms that the flags ask for.
func (c Config) steps() []step {
	p, err := c.Images.WithImageDefaults().Pipeline()
	if err != nil {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil
	}
	return stepsOf(text)
}

// stepsOf reads the transforms of a recipe, none where it is not a list of objects.
func stepsOf(recipe json.RawMessage) (list []step) {
	var raw []map[string]any
	if json.Unmarshal(recipe, &raw) != nil {
		return nil
	}
	for _, members := range raw {
		s := make(step)
		for key, value := range members {
			text, err := json.Marshal(value)
			if err != nil {
				return nil
			}
			s[key] = strings.Trim(string(text), `"`)
		}
		list = append(list, s)
	}
	return list
}

func namesOf(list []step) string {
	var names []string
	for _, s := range list {
		names = append(names, s["op"])
	}
	return strings.Join(names, ", ")
}

// madeOtherwise is the error for a dataset that is not what this run would have built, and so cannot be the result of
// --resume.
func madeOtherwise(dest string, differences []string) error {
	return fmt.Errorf("%s %w already, and --resume cannot continue it: %s; choose another name, or use --overwrite", dest,
		store.ErrExist, strings.Join(differences, "; "))
}

// appended reports whether DEST ends with the records of the source, as after an append that was stopped after its
// last step. If the source has the same name and length, it reads and compares all samples. The samples of a producer
// come once, so they are not compared.
func (r *run) appended(ctx context.Context) (bool, error) {
	if r.producer != nil {
		return false, nil
	}
	s := r.base.Source
	if !r.Resume || s == nil || s.Kind != r.info.Kind || s.Name != r.info.Name || r.info.Count >= 0 &&
		s.Samples != r.info.Count {
		return false, nil
	}
	j, err := r.newJob(ctx, r.Images)
	if err != nil {
		return false, err
	}
	r.log = newRunLog(r.Config)
	err = r.pass(ctx, j, "comparing", r.ahead(j, r.src.Samples()), func(*execute.Slot) error { return nil })
	now := r.log.source(r.info)
	return err == nil && now.Fingerprint == s.Fingerprint && now.Samples == s.Samples, err
}

// sameKind reports whether a source is of that kind. A source in a bucket counts as that kind.
func sameKind(c Config, kind string) bool {
	if c.From != "" && c.From != "auto" || remote.IsURL(c.Source) {
		return c.From == kind || remote.IsURL(c.Source)
	}
	root, err := source.OpenRoot(c.Source, source.Options{Outside: c.Outside})
	if err != nil {
		return false
	}
	defer root.Close()
	is, err := source.DetectIn(root, c.Source)
	if is == "imagefolder" && kind == "labelme" {
		return source.IsLabelMe(root, c.Source)
	}
	return err == nil && is == kind
}

// RecipeThere returns the recipe of the dataset that c appends to, nil where its records came from another kind of
// source.
func (c Config) RecipeThere() *store.Recipe {
	m, err := manifestAt(c.Dest)
	if err != nil || m.Recipe == nil || m.Source == nil || !sameKind(c, m.Source.Kind) {
		return nil
	}
	return m.Recipe
}
