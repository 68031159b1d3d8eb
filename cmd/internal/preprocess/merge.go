package preprocess

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// MergeConfig is everything that Merge depends on.
type MergeConfig struct {
	Parts []string // folders with parts; nil for the one beside Dest
	Dest  string   // dataset to make

	Workers     int   // goroutines that compute checksums and statistics; 0 means one a core
	Memory      int64 // bytes of records under way, as Config.Memory
	Overwrite   bool  // replace a dataset that is there
	Resume      bool  // continue a merge that was stopped, if there is one
	RemoveParts bool  // when the dataset is there

	Spool      string        // as Config.Spool
	Checkpoint time.Duration // as Config.Checkpoint

	outbox *outbox // as Config.outbox
}

// Merge makes one dataset of the parts that runs with a Config.World have made. It has the
// bytes of a dataset that one run has made of all samples. Parts that are missing, there
// twice, or made of another source, with another recipe or by another version are an error
// that names them, and then nothing is written.
//
// Records are copied in their order, so it takes the time of reading and writing the dataset
// once, and its space beside the parts.
func Merge(ctx context.Context, c MergeConfig, progress Progress) (*Summary, error) {
	if slices.ContainsFunc(append([]string{c.Dest}, c.Parts...), remote.IsURL) {
		return mergeRemote(ctx, c, progress)
	}
	folders := c.Parts
	if len(folders) == 0 {
		folders = []string{partsDir(c.Dest)}
	}
	parents := missingParents(c.Dest)
	s, err := mergeParts(ctx, c, folders, progress)
	if err != nil {
		removeEmpty(parents)
		return nil, err
	}
	if c.RemoveParts {
		return s, removeParts(folders, s.ID)
	}
	if left := slices.DeleteFunc(slices.Clone(folders), gone); len(left) > 0 {
		s.hints = append(s.hints, "the parts are not needed any more: "+strings.Join(left, " "))
	}
	return s, nil
}

func mergeParts(ctx context.Context, c MergeConfig, folders []string, progress Progress) (*Summary, error) {
	begin := time.Now()
	if s, err := c.removedBefore(folders); s != nil || err != nil {
		return s, err
	}
	parts, err := findParts(folders)
	if err != nil {
		return nil, err
	}
	config, err := parts[0].Plan.configOf(c, folders)
	if err != nil {
		return nil, err
	}
	if s, err := mergedBefore(config, parts); s != nil || err != nil {
		return s, err
	}
	if err := checkMergePlaces(config); err != nil {
		return nil, err
	}
	r := newMerge(config, parts, progress)
	m, err := r.merge(ctx, parts[0].Plan.Ordered)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return newSummary(r.config, r, m, time.Since(begin))
}

// configOf returns the Config of the whole dataset.
func (p *plan) configOf(m MergeConfig, folders []string) (Config, error) {
	var c Config
	if err := c.setShared(p.Config); err != nil {
		return c, err
	}
	c.Source, c.Dest, c.Format = strings.Join(folders, " "), m.Dest, ""
	if c.format() != p.Format {
		return c, fmt.Errorf("%s would be %s, but the parts were made for %s; give a name for that", m.Dest, formatNames[c.format()], formatNames[p.Format])
	}
	c.Workers, c.Memory = m.Workers, m.Memory
	if c.Workers < 1 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	c.Overwrite, c.Resume, c.Checkpoint, c.outbox = m.Overwrite, m.Resume, m.Checkpoint, m.outbox
	return c, nil
}

// newMerge returns the run that makes a dataset of parts.
func newMerge(c Config, parts []*part, progress Progress) *run {
	p := parts[0].Plan
	schema := store.Schema{Fields: p.Fields}
	r := &run{
		config: c, src: partsSource{parts}, info: p.info(), progress: progress, recipe: p.Recipe,
		job: &job{schema: schema, label: labelOf(schema)}, stageName: "merging", inputs: digestOf(parts),
	}
	return r
}

// digestOf tells parts from others.
func digestOf(parts []*part) string {
	h := sha256.New()
	for _, p := range parts {
		text, err := json.Marshal(p)
		if err != nil {
			panic("preprocess: a part has no JSON: " + err.Error())
		}
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// merge makes the dataset. Samples that are not in the order of --shuffle get it now.
func (r *run) merge(ctx context.Context, ordered bool) (*store.Manifest, error) {
	if r.config.Shuffle.Set && !ordered {
		return r.runShuffled(ctx)
	}
	return r.write(ctx)
}

// mergedBefore returns the summary of a dataset that a merge with --resume has finished
// before.
func mergedBefore(c Config, parts []*part) (*Summary, error) {
	if !c.Resume || c.Overwrite {
		return nil, nil
	}
	m, err := openManifest(c.Dest)
	if err != nil || !parts[0].Plan.became(m) {
		return nil, nil // that it is there will be the error
	}
	return c.found(m, parts[0].Plan.info())
}

// became reports whether a dataset is of the samples that the plan is of.
func (p *plan) became(m *store.Manifest) bool {
	return m.Source != nil && m.Recipe != nil && m.Source.Samples == p.Source.Samples &&
		m.Source.Name == p.Source.Name && m.Recipe.Program == p.Recipe.Program
}

func checkMergePlaces(c Config) error {
	left := store.Unfinished(c.Dest)
	stage, err := store.OpenStage(c.Dest, store.StageOptions{Overwrite: c.Overwrite, Keep: true})
	switch {
	case err == nil && left && !c.Resume && !c.Overwrite:
		return errors.Join(fmt.Errorf("a merge that made %s was stopped; continue it with --resume, or begin anew with --overwrite", c.Dest), stage.Release())
	case errors.Is(err, store.ErrExist) && !c.Overwrite:
		return fmt.Errorf("%s %w already; choose another name, or use --overwrite", c.Dest, store.ErrExist)
	case err != nil:
		return fmt.Errorf("cannot write %s: %w", c.Dest, err)
	case left:
		return stage.Release()
	}
	return stage.Abort()
}
