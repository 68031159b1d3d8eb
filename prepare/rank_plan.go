package prepare

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// shared returns the Config without what may differ from one process to the other.
func (c Config) shared() (json.RawMessage, error) {
	c.Source, c.Dest, c.Format, c.Spool = "", "", "", ""
	c.Workers, c.Memory, c.Checkpoint = 0, 0, 0
	c.Overwrite, c.Resume, c.Rank = false, false, part.Rank{}
	s := sharedConfig{Config: c}
	if c.DType != tensor.Invalid {
		s.DType = c.DType.String()
	}
	return json.Marshal(s)
}

// setShared takes over what shared has returned.
func (c *Config) setShared(text json.RawMessage) error {
	var s sharedConfig
	err := json.Unmarshal(text, &s)
	if err == nil && s.DType != "" {
		err = s.Config.DType.UnmarshalText([]byte(s.DType))
	}
	if err != nil {
		return fmt.Errorf("the plan of the parts: %w: %w", err, store.ErrCorrupt)
	}
	*c = s.Config
	return nil
}

// sharedConfig is a Config as JSON. Its type of pixels may be none, for which tensor.DType has
// no text.
type sharedConfig struct {
	Config
	DType string
}

// listing returns a digest of what the source is made of: the names of all images of a
// folder, the inputs of a producer, or else names and sizes of files.
func (r *run) listing(ctx context.Context) (string, error) {
	h := sha256.New()
	if r.config.producer != nil {
		return r.config.producer.Begin.Inputs, nil
	}
	if r.info.Kind != "imagefolder" {
		err := eachFile(r.config.Source, func(name string, size int64) { fmt.Fprintf(h, "%s\x00%d\n", name, size) })
		return hex.EncodeToString(h.Sum(nil)), err
	}
	for sample, err := range r.src.Samples() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return "", err
		}
		h.Write(append([]byte(sample.Name), 0))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// eachFile calls f for the files that path is, or that are in the folder that it is, by name.
func eachFile(path string, f func(name string, size int64)) error {
	files, err := source.Files(path)
	for _, file := range files {
		if err != nil {
			return err
		}
		err = vfs.WalkDir(file, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err == nil && info.Mode()&fs.ModeSymlink != 0 {
				info, err = vfs.Stat(name)
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(filepath.Dir(file), name)
			f(filepath.ToSlash(rel), info.Size())
			return err
		})
	}
	return err
}

// newPlan returns the plan of a run whose records look like those of the job.
func (r *run) newPlan(ctx context.Context, j *execute.Job, ordered bool) (*part.Plan, error) {
	recipe, err := r.config.recipe(j)
	if err != nil {
		return nil, err
	}
	config, err := r.config.shared()
	if err != nil {
		return nil, err
	}
	listing, err := r.listing(ctx)
	if err != nil {
		return nil, err
	}
	i := r.info
	return &part.Plan{
		Version: part.Version, Size: r.config.Rank.Size, Config: config, Format: r.config.DatasetFormat(), Recipe: recipe, Fields: j.Schema.Fields, Ordered: ordered,
		Source: part.PlannedSource{Kind: i.Kind, Name: i.Name, Samples: i.Count, Unit: i.Unit, Splits: i.Splits, Ignored: i.Ignored.Count, First: i.Ignored.First, Listing: listing},
	}, nil
}
