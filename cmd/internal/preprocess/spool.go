package preprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// spool is where the records are before they are in their order: a dataset.
func (r *run) spool() string {
	return filepath.Join(filepath.Dir(r.config.Dest), "."+filepath.Base(r.config.Dest)+".unshuffled")
}

// collectedName is a file in the spool that says, once this is whole, what it was made of.
const collectedName = "collected.json"

// collected is what that file says.
type collected struct {
	ID   string          `json:"id"`   // of the dataset
	Of   json.RawMessage `json:"of"`   // what else would make other records, see origin
	Note json.RawMessage `json:"note"` // of the run's books
}

// collect makes the dataset in the order of the source, or takes the one that an earlier
// run of the same has made. r.books then describes it.
func (r *run) collect(ctx context.Context) (*store.Manifest, error) {
	m, err := r.collectedBefore()
	if m != nil || err != nil {
		return m, err
	}
	first := &run{
		config: r.config, src: r.src, info: r.info, progress: r.progress, stageName: "collecting", noList: true,
		job: r.job, recipe: r.recipe, inputs: r.inputs,
	}
	c := &first.config
	c.Shuffle, c.Dest, c.Format = Seed{}, r.spool(), formatFlat
	if store.IsFlat(c.Dest) {
		c.Resume, c.Overwrite = false, true
	}
	m, err = first.run(ctx)
	r.books, r.kept, r.resumed = first.books, first.kept, first.resumed
	if err != nil {
		return nil, err
	}
	r.kept = 0
	if err := r.hold(); err != nil {
		return nil, err
	}
	return m, r.noteCollected(m)
}

// hold opens the spool, so that removeSpool removes nothing else.
func (r *run) hold() error {
	r.release()
	parent, name, err := private.Parent(r.spool())
	if err != nil {
		return err
	}
	defer parent.Close()
	r.held, err = private.Own(parent, name)
	return err
}

// release closes the spool.
func (r *run) release() {
	if r.held != nil {
		_ = r.held.Close()
		r.held = nil
	}
}

// origin says of what the spool's records are made and how: nothing that it leaves out changes
// them. It is nil where a look cannot tell whether the source is still the same.
func (r *run) origin() (json.RawMessage, error) {
	c := r.config
	path, err := filepath.Abs(c.Source)
	if err != nil {
		return nil, err
	}
	stamp := stampOf(path)
	if stamp == "" && r.inputs == "" {
		return nil, nil
	}
	c.Source, c.Dest, c.Format, c.Shuffle, c.View, c.Spool = path, "", "", Seed{}, false, ""
	c.Workers, c.Memory, c.Overwrite, c.Resume, c.Checkpoint, c.Compress = 0, 0, false, false, 0, Compress{}
	c.DType = tensor.Uint8 // none has no text
	return json.Marshal([]any{c, int(r.config.DType), r.info.Kind, r.info.Count, stamp, r.inputs, program(), imagefile.Backend()})
}

// noteCollected notes what the spool was made of.
func (r *run) noteCollected(m *store.Manifest) error {
	of, err := r.origin()
	if of == nil || err != nil {
		return err
	}
	r.books.noted = noted{}
	note, err := r.books.note()
	if err != nil {
		return err
	}
	text, err := json.Marshal(collected{m.ID, of, note})
	if err != nil {
		return err
	}
	r.kept = m.Records
	f, err := private.Create(r.held, collectedName, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// collectedBefore returns the manifest of the spool that an earlier run has made of the same,
// and takes its books over; nil if there is none that is known to be.
func (r *run) collectedBefore() (*store.Manifest, error) {
	if !r.config.Resume {
		return nil, nil
	}
	if err := r.hold(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	text, err := r.held.ReadFile(collectedName)
	if err != nil {
		return nil, nil
	}
	of, err := r.origin()
	var before collected
	if err != nil || of == nil || json.Unmarshal(text, &before) != nil || string(before.Of) != string(of) {
		return nil, nil
	}
	d, err := store.OpenFlat(r.spool())
	if err != nil || d.Manifest.ID != before.ID {
		return nil, nil
	}
	b := newBooks(r.config)
	if _, _, err := b.restore([]json.RawMessage{before.Note}); err != nil {
		return nil, nil
	}
	r.books, r.kept, r.resumed = b, d.Manifest.Records, d.Manifest.Records
	return d.Manifest, nil
}

// removeSpool removes what collect made.
func (r *run) removeSpool() error {
	var err error
	if r.held == nil {
		err = private.RemoveOwn(r.spool())
	} else if parent, name, openErr := private.Parent(r.spool()); openErr != nil {
		err = openErr
	} else {
		err = errors.Join(private.Remove(parent, name, r.held), parent.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot remove %s: %w", r.spool(), err)
	}
	return nil
}
