package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/store"
)

// collection makes the records of a shuffled run in the order of the source first, where the source can only be read in
// order. The records are a dataset in a spool, which is then read in the order of the shuffle.
type collection struct {
	run  *run
	held *os.Root // the folder, from hold on
}

// path is where the dataset of the spool is.
func (c *collection) path() string {
	return filepath.Join(filepath.Dir(c.run.Dest), "."+filepath.Base(c.run.Dest)+".unshuffled")
}

// collectedName is a file in the spool that states, once the spool is complete, which inputs it was built from.
const collectedName = "collected.json"

// collected is the content of the file collectedName.
type collected struct {
	ID   string          `json:"id"`   // of the dataset
	Of   json.RawMessage `json:"of"`   // what else would make other records, see origin
	Note json.RawMessage `json:"note"` // of the run's log
}

// make makes the dataset of the spool, or takes over the dataset that an earlier run made of the same inputs. The
// log of the run then describes it. The file collectedName is written after the dataset is complete: a spool without
// it is made again.
func (c *collection) make(ctx context.Context) (*store.Manifest, error) {
	r := c.run
	m, err := c.before()
	if m != nil || err != nil {
		return m, err
	}
	first := newRun(r.setup, r.src)
	first.info, first.task = r.info, r.task
	first.task.stage, first.task.quiet = "collecting", true
	first.Shuffle, first.Dest, first.Format = Seed{}, c.path(), part.Flat
	if layout.IsFlat(first.Dest) {
		first.Resume, first.Overwrite = false, true
	}
	m, err = first.run(ctx)
	r.log, r.kept, r.resumed = first.log, first.kept, first.resumed
	if err != nil {
		return nil, err
	}
	r.kept = 0
	if err := c.hold(); err != nil {
		return nil, err
	}
	return m, c.note(m)
}

// hold opens the folder of the spool, so that remove can tell it from a folder that another process has put in its
// place.
func (c *collection) hold() error {
	c.close()
	parent, name, err := private.Parent(c.path())
	if err != nil {
		return err
	}
	defer parent.Close()
	c.held, err = private.Own(parent, name)
	return err
}

// close closes the folder of the spool.
func (c *collection) close() {
	if c.held != nil {
		_ = c.held.Close()
		c.held = nil
	}
}

// origin returns everything that the records in the spool, the dataset in the order of the source, depend on: the
// source, its state on disk, the flags and the program. A later run uses the spool again if its origin is equal. origin
// returns nil if nothing shows whether the source is still the same; a later run then makes the spool again.
func (c *collection) origin() (json.RawMessage, error) {
	r, config := c.run, c.run.common()
	path, err := filepath.Abs(r.Source)
	if err != nil {
		return nil, err
	}
	stamp := stampOf(path)
	if stamp == "" && r.task.inputs == "" {
		return nil, nil
	}
	config.Source, config.Shuffle, config.View, config.Compress = path, Seed{}, false, Compress{}
	return json.Marshal([]any{config, r.info.Kind, r.info.Count, stamp, r.task.inputs,
		program(), imagefile.Backend()})
}

// note records which inputs the spool was built from.
func (c *collection) note(m *store.Manifest) error {
	r := c.run
	of, err := c.origin()
	if of == nil || err != nil {
		return err
	}
	r.log.noted = 0
	note, err := r.log.note()
	if err != nil {
		return err
	}
	text, err := json.Marshal(collected{m.ID, of, note})
	if err != nil {
		return err
	}
	r.kept = m.Records
	f, err := private.Create(c.held, collectedName, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// before returns the manifest of a spool that an earlier run built from the same inputs,
// and takes over its log; nil if no such spool is known.
func (c *collection) before() (*store.Manifest, error) {
	r := c.run
	if !r.Resume {
		return nil, nil
	}
	if err := c.hold(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	text, err := c.held.ReadFile(collectedName)
	if err != nil {
		return nil, nil
	}
	of, err := c.origin()
	var before collected
	if err != nil || of == nil || json.Unmarshal(text, &before) != nil || string(before.Of) != string(of) {
		return nil, nil
	}
	d, err := store.OpenFlat(c.path())
	if err != nil || d.Manifest.ID != before.ID {
		return nil, nil
	}
	b := newRunLog(r.Config)
	if _, _, err := b.restore([]json.RawMessage{before.Note}); err != nil {
		return nil, nil
	}
	r.log, r.kept, r.resumed = b, d.Manifest.Records, d.Manifest.Records
	return d.Manifest, nil
}

// remove removes the spool, and nothing that another process has put in its place.
func (c *collection) remove() error {
	var err error
	if c.held == nil {
		err = private.RemoveOwn(c.path())
	} else if parent, name, openErr := private.Parent(c.path()); openErr != nil {
		err = openErr
	} else {
		err = errors.Join(private.Remove(parent, name, c.held), parent.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot remove %s: %w", c.path(), err)
	}
	return nil
}
