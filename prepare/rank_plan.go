package prepare

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"

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
	text, err := appendMembers([]byte("{"), reflect.ValueOf(c))
	dtype := ""
	if c.Images.DType != tensor.Invalid { // which has no text
		dtype = c.Images.DType.String()
	}
	return fmt.Appendf(text, `"DType":%q}`, dtype), err
}

// appendMembers appends the exported fields of a Config as members of a JSON object, the fields of Images and of Rules
// among them, and without the type of pixels.
func appendMembers(b []byte, v reflect.Value) ([]byte, error) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || f.Tag.Get("json") == "-" || f.Name == "DType" {
			continue
		}
		var err error
		if f.Name == "Images" || f.Name == "Rules" {
			b, err = appendMembers(b, v.Field(i))
		} else {
			var text []byte
			text, err = json.Marshal(v.Field(i).Interface())
			b = append(fmt.Appendf(b, "%q:%s", f.Name, text), ',')
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// setShared takes over what shared has returned.
func (c *Config) setShared(text json.RawMessage) error {
	var pixels struct{ DType string }
	var of Config
	err := errors.Join(json.Unmarshal(text, &pixels), json.Unmarshal(text, &of), unmarshalImages(text, &of.Images),
		json.Unmarshal(text, &of.Images.Rules))
	if err == nil && pixels.DType != "" {
		err = of.Images.DType.UnmarshalText([]byte(pixels.DType))
	}
	if err != nil {
		return fmt.Errorf("the plan of the parts: %w: %w", err, store.ErrCorrupt)
	}
	*c = of
	return nil
}

// unmarshalImages reads what is not the type of pixels.
func unmarshalImages(text json.RawMessage, to *Images) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	delete(members, "DType")
	rest, err := json.Marshal(members)
	return errors.Join(err, json.Unmarshal(rest, to))
}

// planning determines the values that all ranks must agree on.
type planning struct{ run *run }

// listing returns a digest of the contents of the source: the names of all images of a
// folder, the inputs of a producer, or else names and sizes of files.
func (p planning) listing(ctx context.Context) (string, error) {
	h := sha256.New()
	if p.run.config.producer != nil {
		return p.run.config.producer.Begin.Inputs, nil
	}
	if p.run.info.Kind != "imagefolder" {
		err := eachFile(p.run.config.Source, func(name string, size int64) { fmt.Fprintf(h, "%s\x00%d\n", name, size) })
		return hex.EncodeToString(h.Sum(nil)), err
	}
	for sample, err := range p.run.src.Samples() {
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
func (p planning) newPlan(ctx context.Context, j *execute.Job, ordered bool) (*part.Plan, error) {
	recipe, err := p.run.config.recipe(j)
	if err != nil {
		return nil, err
	}
	config, err := p.run.config.shared()
	if err != nil {
		return nil, err
	}
	listing, err := p.listing(ctx)
	if err != nil {
		return nil, err
	}
	i := p.run.info
	return &part.Plan{
		Version: part.Version, Size: p.run.config.Rank.Size, Config: config, Format: p.run.config.DatasetFormat(),
		Recipe: recipe, Fields: j.Schema.Fields, Ordered: ordered,
		Source: part.PlannedSource{Kind: i.Kind, Name: i.Name, Samples: i.Count, Unit: i.Unit, Splits: i.Splits,
			Ignored: i.Ignored.Count, First: i.Ignored.First, Listing: listing},
	}, nil
}
