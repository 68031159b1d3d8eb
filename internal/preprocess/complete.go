package preprocess

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/decode"
	"github.com/penstock/penstock/internal/source"
	"github.com/penstock/penstock/store"
)

// complete returns the summary of a dataset that a run before this one has finished, as
// --resume finds it when that was stopped behind its last step. It is nil if there is none,
// or one that was made in another way.
func complete(c Config) (*Summary, error) {
	if !c.Resume || c.Append || c.Overwrite {
		return nil, nil
	}
	if _, err := os.Lstat(c.Dest); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m, err := openManifest(c.Dest)
	if err != nil || !c.made(m) {
		return nil, nil // that it is there will be the error
	}
	return c.found(m, infoOf(m))
}

// infoOf describes the source of a dataset as its manifest has it.
func infoOf(m *store.Manifest) source.Info {
	info := source.Info{Kind: m.Source.Kind, Unit: "samples"}
	for _, f := range m.Fields {
		info.Fields = append(info.Fields, source.Field{Field: f})
	}
	return info
}

// completeHint is what a summary says of a dataset that was there.
const completeHint = "it was complete already; nothing was left to do"

// found returns the summary of a dataset that is complete, and removes what the run that
// made it has left beside it.
func (c Config) found(m *store.Manifest, info source.Info) (*Summary, error) {
	err := tidy(c.Dest)
	if c.Shuffle.Set {
		err = errors.Join(err, (&run{config: c}).removeSpool())
	}
	if err != nil {
		return nil, err
	}
	return c.describe(m, info)
}

// describe returns the summary of a dataset that is complete.
func (c Config) describe(m *store.Manifest, info source.Info) (*Summary, error) {
	r := &run{config: c, books: newBooks(c), info: info}
	r.info.Hints = []string{completeHint}
	r.books.restoreFrom(m)
	return newSummary(c, r, m, 0)
}

// tidy removes what lies beside a dataset or a file that is there, of a process that was
// killed when it had published that.
func tidy(path string) error {
	if err := store.CheckDest(path, store.StageOptions{}); !errors.Is(err, store.ErrExist) {
		return err
	}
	return nil
}

// restoreFrom takes over what the manifest of a dataset that is complete says.
func (b *books) restoreFrom(m *store.Manifest) {
	b.samples, b.bytes = m.Source.Samples, m.Source.Bytes
	for _, s := range m.Skipped {
		b.skipped = append(b.skipped, leftOut{s.Sample, "skipped before", s.Reason})
		b.kinds["skipped before"]++
	}
}

// made reports whether a dataset is what this Config would make of a source of that name.
func (c Config) made(m *store.Manifest) bool {
	if m.Recipe == nil || m.Source == nil || m.Recipe.Program != program() || m.Recipe.Decoder != decode.Backend() {
		return false
	}
	path, err := filepath.Abs(c.Source)
	if err != nil || filepath.Base(path) != m.Source.Name {
		return false
	}
	images := c.images()
	p, err := images.pipeline()
	if err != nil {
		return false
	}
	want, err := json.Marshal(p)
	if err != nil {
		return false
	}
	var is bytes.Buffer
	if m.Recipe.Transforms != nil && json.Compact(&is, m.Recipe.Transforms) != nil {
		return false
	}
	same := is.Len() == 0 || bytes.Equal(is.Bytes(), want) || c.Normalize.Dataset || c.Transforms != nil
	return same && (maps.Equal(images.options(), m.Recipe.Options) || maps.Equal(c.options(), m.Recipe.Options))
}

// checkAppended refuses to append a source a second time because --resume finds nothing to
// go on with.
func (r *run) checkAppended(unfinished bool) error {
	c := r.config
	if !c.Append || !c.Resume || unfinished || r.base.Source == nil {
		return nil
	}
	if s := r.base.Source; s.Kind == r.info.Kind && s.Name == r.info.Name && s.Samples == r.info.Count {
		return fmt.Errorf("%s was appended to %s already; to append it once more, leave --resume out", c.Source, c.Dest)
	}
	return nil
}
