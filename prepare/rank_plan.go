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
)

// common returns the Config without the settings in which processes of one dataset may
// differ.
func (c Config) common() Config {
	c.Source, c.Dest, c.Format, c.Spool = "", "", "", ""
	c.Workers, c.Memory, c.Checkpoint = 0, 0, 0
	c.Overwrite, c.Resume, c.Rank = false, false, part.Rank{}
	return c
}

// listing returns a digest of the contents of the source: the names of all images of a
// folder, the inputs of a producer, or else names and sizes of files.
func (r *partRun) listing(ctx context.Context) (string, error) {
	if r.producer != nil {
		return r.producer.Begin.Inputs, nil
	}
	h := sha256.New()
	if r.info.Kind != "imagefolder" {
		err := eachFile(r.Source, func(name string, size int64) { fmt.Fprintf(h, "%s\x00%d\n", name, size) })
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

// eachFile calls f for the file at path, or for the files in the folder at path, by name.
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

// newPlan returns the plan of a run whose records have the shape and types of the job.
func (r *partRun) newPlan(ctx context.Context, j *execute.Job, ordered bool) (*part.Plan, error) {
	recipe, err := r.recipe(j)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(r.common())
	if err != nil {
		return nil, err
	}
	listing, err := r.listing(ctx)
	if err != nil {
		return nil, err
	}
	i := r.info
	return &part.Plan{
		Version: part.Version, Size: r.Rank.Size, Config: config, Format: r.DatasetFormat(),
		Recipe: recipe, Fields: j.Schema.Fields, Ordered: ordered,
		Source: part.PlannedSource{Kind: i.Kind, Name: i.Name, Samples: i.Count, Unit: i.Unit, Splits: i.Splits,
			Ignored: i.Ignored.Count, First: i.Ignored.First, Listing: listing},
	}, nil
}
