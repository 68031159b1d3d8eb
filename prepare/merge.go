package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// MergeConfig is everything that Merge depends on.
type MergeConfig struct {
	Parts []string // folders with parts; nil for the one next to Dest
	Dest  string   // dataset to make

	Workers     int   // goroutines that compute checksums and statistics; 0 means one a core
	Memory      int64 // bytes of records under way, as Config.Memory
	Overwrite   bool  // replace an existing dataset
	Resume      bool  // continue a merge that was stopped, if there is one
	RemoveParts bool  // once the dataset is complete
	Wait        bool  // for parts that do not exist yet
	KeepShards  bool  // the parts' files become files of the dataset, which has the parts' shards then

	Spool      string        // as Config.Spool
	Checkpoint time.Duration // as Config.Checkpoint
}

// merge is a MergeConfig with the services that it uses.
type merge struct {
	MergeConfig
	progress Progress
	uploader *upload.Uploader // see upload.Uploader
	take     part.TakeFile    // with KeepShards; nil: files of one file system are linked
}

// Merge builds one dataset from the parts that runs with a Config.World have written. The result is byte for byte the
// dataset that a single run over all samples writes. If parts are missing, duplicated, or built from another source,
// with another recipe or by another version, the error names them, and nothing is written.
//
// Records are copied in order, so it takes the time of reading and writing the dataset once, and its space in addition
// to the space of the parts. With KeepShards, files are linked, or copied inside their bucket, and the dataset differs
// from the dataset of a single run only in its shards.
func Merge(ctx context.Context, c MergeConfig, progress Progress) (*Summary, error) {
	m := merge{MergeConfig: c, progress: progress}
	if slices.ContainsFunc(append([]string{c.Dest}, c.Parts...), remote.IsURL) {
		return mergeRemote(ctx, m)
	}
	return m.run(ctx)
}

// run is [Merge] of places on this machine.
func (c merge) run(ctx context.Context) (*Summary, error) {
	folders := c.Parts
	if len(folders) == 0 {
		folders = []string{part.Folder(c.Dest)}
	}
	parents := missingParents(c.Dest)
	s, err := c.parts(ctx, folders)
	if err != nil {
		removeEmpty(parents)
		return nil, err
	}
	if c.RemoveParts {
		return s, part.Remove(folders, s.ID)
	}
	if left := slices.DeleteFunc(slices.Clone(folders), part.Gone); len(left) > 0 {
		s.Hints = append(s.Hints, "the parts are not needed any more: "+strings.Join(left, " "))
	}
	return s, nil
}

// parts first looks whether an earlier attempt is complete: a merge that was killed after its commit, or while it
// removed parts, has nothing left to do but that.
func (c merge) parts(ctx context.Context, folders []string) (*Summary, error) {
	begin := time.Now()
	if s, err := c.removedBefore(folders); s != nil || err != nil {
		return s, err
	}
	parts, err := c.findParts(ctx, folders)
	if err != nil {
		return nil, err
	}
	plan := parts.Plan
	config, err := c.whole(plan, folders)
	if err != nil {
		return nil, err
	}
	if s, err := mergedBefore(config, plan); s != nil || err != nil {
		return s, err
	}
	if c.KeepShards {
		if err := c.checkKeep(config, plan, folders); err != nil {
			return nil, err
		}
	}
	if err := checkDest(config, "merge"); err != nil {
		return nil, err
	}
	r, err := newMerge(config, parts)
	if err != nil {
		return nil, err
	}
	if c.KeepShards {
		parts.Keep, r.task.adopt = true, func() (store.Writer, error) {
			return parts.Adopt(config.Dest, config.Overwrite, c.take)
		}
	}
	m, err := r.merge(ctx, plan.Ordered)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return r.summary(m, time.Since(begin))
}

// pollParts is how long a merge waits before it looks again for a part that is missing.
const pollParts = time.Second

// findParts returns the parts in the folders. With Wait the Set also has parts that do not exist yet, and their
// samples are read when the parts appear.
func (c merge) findParts(ctx context.Context, folders []string) (*part.Set, error) {
	if !c.Wait {
		return part.Find(folders)
	}
	said := ""
	return part.Await(folders, func(missing string) error {
		if missing != said {
			said = missing
			c.progress.Note("waiting for " + missing + "\n")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollParts):
			return nil
		}
	})
}

// checkKeep refuses parts whose files cannot become files of the dataset.
func (c *merge) checkKeep(whole setup, plan *part.Plan, folders []string) error {
	if c.take == nil {
		if c.take = part.Link; c.uploader != nil || slices.ContainsFunc(folders, vfs.Mounted) {
			return errors.New("--keep-shards: the parts and DEST must be in one bucket, or both on file systems; " +
				"merge without it")
		}
	}
	return plan.KeepProblem(whole.Split != nil, whole.Dedup, whole.Shuffle.Set)
}

// whole returns the setup of the run that makes the whole dataset.
func (m merge) whole(p *part.Plan, folders []string) (setup, error) {
	c := setup{progress: m.progress, uploader: m.uploader}
	if err := json.Unmarshal(p.Config, &c.Config); err != nil {
		return c, fmt.Errorf("the plan of the parts: %w: %w", err, store.ErrCorrupt)
	}
	c.Source, c.Dest, c.Format = strings.Join(folders, " "), m.Dest, ""
	if c.DatasetFormat() != p.Format {
		return c, fmt.Errorf("%s would be %s, but the parts were made for %s; give a name for that", m.Dest,
			FormatNames[c.DatasetFormat()], FormatNames[p.Format])
	}
	c.Workers, c.Memory = m.Workers, m.Memory
	if c.Workers < 1 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	c.Overwrite, c.Resume, c.Checkpoint = m.Overwrite, m.Resume, m.Checkpoint
	return c, nil
}

// newMerge returns the run that makes a dataset of parts.
func newMerge(c setup, parts *part.Set) (*run, error) {
	p := parts.Plan
	schema := store.Schema{Fields: p.Fields}
	r := newRun(c, parts)
	by, err := c.Stratify.Find(schema, c.labels())
	r.task = task{stage: "merging", inputs: parts.Digest(), job: &execute.Job{Schema: schema, Stratum: by},
		recipe: p.Recipe}
	return r, err
}

// merge makes the dataset. Samples that are not in the order of --shuffle get it now.
func (r *run) merge(ctx context.Context, ordered bool) (*store.Manifest, error) {
	if r.Shuffle.Set && !ordered {
		return r.runShuffled(ctx)
	}
	return r.write(ctx)
}

// mergedBefore returns the summary of a dataset that a merge with --resume has finished
// before.
func mergedBefore(c setup, p *part.Plan) (*Summary, error) {
	if !c.Resume || c.Overwrite {
		return nil, nil
	}
	m, err := openManifest(c.Dest)
	if err != nil || !p.Became(m) {
		return nil, nil // the caller reports that it exists
	}
	return c.found(m, p.Info())
}

// removedBefore returns the summary of a dataset that an earlier merge has built, if that merge has removed
// some of its parts. It removes the parts that were partly removed as well. It is nil if all folders exist,
// and if neither the rest of the parts nor --resume shows that they belonged to that
// dataset.
func (c merge) removedBefore(folders []string) (*Summary, error) {
	left := slices.DeleteFunc(slices.Clone(folders), part.Gone)
	if len(left) == len(folders) {
		return nil, nil
	}
	m, err := openManifest(c.Dest)
	if err != nil || m.Source == nil || !part.AllBecame(left, m) {
		return nil, nil // that parts are missing will be the error
	}
	begun := slices.ContainsFunc(folders, func(f string) bool { return !part.Gone(part.TrashPath(f, m.ID)) })
	if !begun && (!c.Resume || c.Overwrite) {
		return nil, nil
	}
	if begun {
		if err := part.Remove(folders, m.ID); err != nil {
			return nil, err
		}
	}
	return setup{Config: Config{Source: strings.Join(folders, " "), Dest: c.Dest, Workers: c.Workers}}.found(m, infoOf(m))
}
