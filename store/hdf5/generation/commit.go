package generation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/seal"
	"github.com/penstock/penstock/store/hdf5/view"
	"github.com/penstock/penstock/store/write"
)

// Commit implements write.Home. It waits while another process changes the file.
func (f File) Commit(base *store.Manifest, next *write.Revision) error {
	c, err := open(string(f))
	if err != nil {
		return err
	}
	defer c.close()
	if c.newest.Generation != base.Generation || c.newest.ID != base.ID {
		return write.ErrLost
	}
	parts, err := c.columns(next)
	if err != nil {
		return err
	}
	history, err := c.followed()
	if err != nil {
		return err
	}
	return c.commit(parts, next.Manifest, history)
}

// followed returns the history of the file after its newest generation has become an earlier one.
func (c *change) followed() (layout.HDF5History, error) {
	h := c.history
	at := time.Time{}
	if made := c.newest.Change; made != nil && made.Time != nil {
		at = *made.Time
	} else {
		info, err := c.file.Stat()
		if err != nil {
			return h, layout.WithoutPath(err)
		}
		at = info.ModTime().UTC().Truncate(time.Second)
	}
	was := layout.HDF5Generation{Generation: c.newest.Generation, Head: c.head, Size: c.end, Time: at}
	h.Generations = append(h.Generations, was)
	return h, nil
}

// parts is a generation in the file without its metadata.
type parts struct {
	objects []encode.Object
	end     int64 // of the arrays that were written
}

// commit makes m, whose arrays are in the file, its newest generation.
func (c *change) commit(p *parts, m *store.Manifest, history layout.HDF5History) error {
	history.Newest = m.Generation
	objects, err := describe(p.objects, m, history)
	if err != nil {
		return err
	}
	root := []encode.Attribute{
		encode.Text("format", m.Format), encode.Integer("format_version", int64(m.Version)),
		encode.Integer("num_samples", m.Records), encode.Integer("complete", 1),
	}
	head, body, err := encode.File(p.end, objects, root)
	if err != nil {
		return err
	}
	if _, err := c.file.WriteAt(body, p.end); err != nil {
		return layout.WithoutPath(err)
	}
	if err := seal.AppendTo(c.file, layout.HDF5With(c.file, head), p.end+int64(len(body))); err != nil {
		return layout.WithoutPath(err)
	}
	if err := c.file.Sync(); err != nil {
		return layout.WithoutPath(err)
	}
	if _, err := c.file.WriteAt(head, 0); err != nil {
		return layout.WithoutPath(err)
	}
	c.committed = true
	return layout.WithoutPath(c.file.Sync())
}

// describe adds the manifest and the history to the objects of columns, and their attributes.
func describe(columns []encode.Object, m *store.Manifest, h layout.HDF5History) ([]encode.Object, error) {
	manifest, err := m.Encode()
	if err != nil {
		return nil, err
	}
	history, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	objects := append(columns, text(layout.HDF5Manifest, manifest), text(layout.HDF5Generations, history))
	return view.Describe(objects, m.Schema())
}

func text(path string, data []byte) encode.Object {
	return encode.Object{Path: path, Element: encode.Element{Text: len(data)}, Data: data}
}

// CreateTag implements write.Home. The tag is in the file, and text is not needed.
func (f File) CreateTag(m *store.Manifest, name string, _ []byte) error {
	tag := store.Tag{Name: name, Generation: m.Generation, ID: m.ID}
	return again(string(f), func(h *layout.HDF5History) error {
		for _, t := range h.Tags {
			if t.Name == tag.Name {
				return fmt.Errorf("the tag %w; remove it first, or choose another name", store.ErrExist)
			}
		}
		if tag.Generation != h.Newest && h.Find(tag.Generation) == nil {
			return fmt.Errorf("generation %d was removed meanwhile: %w", tag.Generation, store.ErrBusy)
		}
		h.Tags = append(h.Tags, layout.HDF5Tag(tag))
		return nil
	})
}

// again commits the newest generation of the file at path with a history that f changes.
func again(path string, f func(h *layout.HDF5History) error) error {
	c, err := open(path)
	if err != nil {
		return err
	}
	defer c.close()
	h := c.history
	if err := f(&h); err != nil {
		return err
	}
	p, err := c.columns(&write.Revision{Manifest: c.newest, Of: c.newest.Generation, Columns: write.Unchanged(c.newest)})
	if err != nil {
		return err
	}
	return c.commit(p, c.newest, h)
}
