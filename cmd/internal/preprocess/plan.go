package preprocess

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// plan is what all parts of a dataset have in common: all that its bytes depend on beside
// the records themselves.
type plan struct {
	Version int             `json:"part_version"` // 1
	Size    int             `json:"world_size"`
	Config  json.RawMessage `json:"config"` // as it is for a whole dataset, without what is of one machine
	Format  string          `json:"format"` // of the dataset
	Recipe  *store.Recipe   `json:"recipe"`
	Fields  []store.Field   `json:"fields"`
	Source  plannedSource   `json:"source"`
	Ordered bool            `json:"ordered"` // the samples come in the order that --shuffle asks for
}

// plannedSource is the source as every process must have seen it.
type plannedSource struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Samples int64    `json:"samples"`
	Unit    string   `json:"unit"`
	Splits  []string `json:"splits,omitempty"`
	Ignored int64    `json:"ignored"`
	First   string   `json:"first_ignored,omitempty"`
	Listing string   `json:"listing"` // digest of names and sizes
}

const partVersion = 1

// newPlan returns the plan of a run whose records look like those of the job.
func (r *run) newPlan(ctx context.Context, j *job, ordered bool) (*plan, error) {
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
	return &plan{
		Version: partVersion, Size: r.config.World.Size, Config: config, Format: r.config.format(), Recipe: recipe, Fields: j.schema.Fields, Ordered: ordered,
		Source: plannedSource{i.Kind, i.Name, i.Count, i.Unit, i.Splits, i.Ignored.Count, i.Ignored.First, listing},
	}, nil
}

// sharedConfig is a Config as JSON. Its type of pixels may be none, for which tensor.DType has
// no text.
type sharedConfig struct {
	Config
	DType string
}

// shared returns the Config without what may differ from one process to the other.
func (c Config) shared() (json.RawMessage, error) {
	c.Source, c.Dest, c.Format, c.Spool = "", "", "", ""
	c.Workers, c.Memory, c.Checkpoint = 0, 0, 0
	c.Overwrite, c.Resume, c.World = false, false, World{}
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

// listing returns a digest of what the source is made of: the names of all images of a
// folder, or else names and sizes of files.
func (r *run) listing(ctx context.Context) (string, error) {
	h := sha256.New()
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

// differs says in what two plans are not the same, "" if in nothing.
func (p *plan) differs(other *plan) string {
	a, b := p.flat(), other.flat()
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if a[key] != b[key] {
			return fmt.Sprintf("%s: %s, and %s", key, clipped(a[key]), clipped(b[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[key]; !ok {
			return fmt.Sprintf("%s: none, and %s", key, clipped(b[key]))
		}
	}
	return ""
}

// flat returns the plan as text by key, and by key of key.
func (p *plan) flat() map[string]string {
	all := make(map[string]string)
	text, err := json.Marshal(p)
	if err != nil {
		panic("preprocess: a plan has no JSON: " + err.Error())
	}
	flatten(all, "", text)
	return all
}

// flatten enters the members of a JSON object, those of objects in it by themselves.
func flatten(all map[string]string, key string, text json.RawMessage) {
	var members map[string]json.RawMessage
	if !bytes.HasPrefix(text, []byte("{")) || json.Unmarshal(text, &members) != nil {
		all[key] = string(text)
		return
	}
	for name, value := range members {
		if key != "" {
			name = key + "." + name
		}
		flatten(all, name, value)
	}
}

func clipped(text string) string {
	const most = 120
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// info describes the source as the plan has it.
func (p *plan) info() source.Info {
	s := p.Source
	i := source.Info{
		Kind: s.Kind, Name: s.Name, Count: s.Samples, Unit: s.Unit, Splits: s.Splits,
		Ignored: source.Ignored{Count: s.Ignored, First: s.First},
	}
	for _, f := range p.Fields {
		i.Fields = append(i.Fields, source.Field{Field: f})
	}
	return i
}
