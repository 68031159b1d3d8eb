package write

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// Editing is the next generation of a dataset while it is made from the newest one: the same records, with other
// columns or marks. No file of the dataset is changed, since readers of earlier generations have the files mapped; a
// generation lists other files.
type Editing struct {
	Base   *store.Manifest // the newest generation
	fields []editedField
	splits []string

	deleted []uint64 // as store.Deleted.Words; nil if there are none

	// withoutValues has, by column, the deleted records for which the column has no values, as it was written after
	// they were deleted. Records that were restored later are left out of the manifest's list.
	withoutValues map[string][]uint64
}

// editedField is a field with its files and what the manifest says of its values.
type editedField struct {
	store.Field
	files [][]store.File   // by shard; nil for Zarr and HDF5
	array storedField      // for Zarr and HDF5
	of    *ManifestBuilder // has the state of the field's statistics and identity
	at    int              // the number of the field in that builder
}

// mostAttempts limits how often a change is made again because another writer committed first.
const mostAttempts = 10

// Edit commits the generation that f makes from the newest one of a dataset, and returns its manifest.
// If another writer commits meanwhile, f is called again with that writer's generation.
func Edit(home Home, change store.Change, f func(e *Editing) error) (*store.Manifest, error) {
	return commit(home, func(base *store.Manifest) (*store.Manifest, error) {
		e, err := NewEditing(base)
		if err != nil {
			return nil, err
		}
		if err := f(e); err != nil {
			return nil, err
		}
		return e.manifest(change)
	})
}

// Restore commits the content of an earlier generation as the next generation. It holds the earlier generation until
// the commit is done: a concurrent Prune could remove its files after the new manifest was made and before it is
// committed.
func Restore(home Home, old *store.Manifest, change store.Change) (*store.Manifest, error) {
	release, held := home.Hold(old)
	if release == nil {
		return nil, held
	}
	m, err := commit(home, func(base *store.Manifest) (*store.Manifest, error) {
		// The newest generation may have its manifest in the folder alone, where Hold does not find it. Prune never
		// removes it.
		if held != nil && base.Generation != old.Generation {
			return nil, held
		}
		m := *old
		m.Parent, m.Generation, m.Change = base.Generation, base.Generation+1, stamped(change)
		return &m, nil
	})
	return m, errors.Join(err, release())
}

// commit commits the generation that next makes from the newest one. If another writer commits first, next is called
// again with that writer's generation.
func commit(home Home, next func(base *store.Manifest) (*store.Manifest, error)) (*store.Manifest, error) {
	if err := home.Check(); err != nil {
		return nil, err
	}
	var lost error
	for range mostAttempts {
		base, err := home.Folder().Manifest("")
		if err != nil {
			return nil, err
		}
		m, err := next(base)
		if err != nil {
			return nil, err
		}
		if lost = home.Commit(base, m); !errors.Is(lost, ErrLost) {
			return m, lost
		}
	}
	return nil, fmt.Errorf("%d others were committed before this change could be; run it again: %w", mostAttempts, lost)
}

// stamped returns a change with the time and a random number. By the number, two manifests of otherwise equal changes
// differ, and a writer recognizes its own commit when the answer to it was lost.
func stamped(change store.Change) *store.Change {
	now := time.Now().UTC().Truncate(time.Second)
	change.Time, change.Write = &now, RandomTag()+RandomTag()
	return &change
}

// NewEditing begins the generation that follows base. It restores the state of statistics and identity from the
// manifest, so no record is read.
func NewEditing(base *store.Manifest) (*Editing, error) {
	if len(base.BuilderState) == 0 {
		return nil, fmt.Errorf("its manifest has no ledger, from which the id of its columns is computed: %w",
			store.ErrUnsupported)
	}
	e := &Editing{Base: base, splits: base.SplitNames()}
	if err := e.readDeleted(); err != nil {
		return nil, err
	}
	b := NewManifestBuilder(base.Schema(), e.splits...)
	if err := b.Restore(base.BuilderState); err != nil {
		return nil, err
	}
	for i, f := range base.Fields {
		e.fields = append(e.fields, editedField{Field: f, of: b, at: i})
	}
	if len(base.Shards) == 0 { // Zarr, HDF5
		for i := range e.fields {
			e.fields[i].array = storedIn(base, base.Fields[i])
		}
		return e, nil
	}
	columns := layout.Columns(base.Schema().Specs())
	for _, s := range base.Shards {
		for i := range e.fields {
			e.fields[i].files = append(e.fields[i].files, nil)
		}
		for k, c := range columns {
			files := e.fields[c.Field].files
			files[len(files)-1] = append(files[len(files)-1], s.Files[2*k:2*k+2]...)
		}
	}
	return e, nil
}

// manifest returns the manifest of the next generation, with the fields as they are now. Its shards list the files of
// the fields in the order of the fields, as readers find files by position.
func (e *Editing) manifest(change store.Change) (*store.Manifest, error) {
	m := *e.Base
	m.Parent, m.Generation, m.Change = m.Generation, m.Generation+1, stamped(change)
	m.Fields, m.Shards = nil, slices.Clone(m.Shards)
	for k := range m.Shards {
		m.Shards[k].Files = nil
		for _, f := range e.fields {
			m.Shards[k].Files = append(m.Shards[k].Files, f.files[k]...)
		}
	}
	for _, f := range e.fields {
		m.Fields = append(m.Fields, f.Field)
	}
	m.Deleted = e.leftOut()
	if m.Metadata != nil {
		e.putArrays(&m)
	}
	if len(m.Shards) == 0 {
		e.putStorage(&m)
	}
	if err := e.summarize(&m); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	setVersion(&m)
	return &m, nil
}

// summarize computes the statistics and the id of m from the saved state of each field. Fields have separate states, so
// a column can be added, dropped or replaced without reading another column.
func (e *Editing) summarize(m *store.Manifest) (err error) {
	b := NewManifestBuilder(m.Schema(), e.splits...)
	m.Statistics = make(map[string]*store.Statistics)
	for k := range b.metadata {
		to := &b.metadata[k]
		for i, f := range e.fields {
			from := &f.of.metadata[k]
			to.count, to.ids[i], to.stats[i] = from.count, from.ids[f.at], from.stats[f.at]
			to.lengths[i], to.labels[i] = from.lengths[f.at], from.labels[f.at]
		}
	}
	for i, f := range m.Fields {
		m.Statistics[f.Name] = b.statistics(i, f, b.metadata)
	}
	m.BuilderState = b.State()
	m.ID, err = m.Deleted.ID(b.id(m.Fields), m.Records)
	return err
}

// Content describes a file that is written anew: the fields as they are now, the name that each field has in Base (""
// for a field that was Put), and how the columns are compressed.
func (e *Editing) Content() (fields []store.Field, origins []string, storage map[string]*store.Storage) {
	storage = make(map[string]*store.Storage)
	for _, f := range e.fields {
		fields, origins = append(fields, f.Field), append(origins, f.array.name)
		maps.Copy(storage, f.array.storage)
	}
	return fields, origins, storage
}

// find returns the position of the field that has the name in Base.
func (e *Editing) find(name string) (int, error) {
	if i := e.Base.Schema().Index(name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("it has no column %q; it has %s", name, fieldNames(e.Base))
}

// Drop leaves columns out of the next generation. Their files stay for earlier generations.
func (e *Editing) Drop(names ...string) error {
	for _, name := range names {
		if _, err := e.find(name); err != nil {
			return err
		}
	}
	e.fields = slices.DeleteFunc(e.fields, func(f editedField) bool { return slices.Contains(names, f.Name) })
	for _, name := range names {
		delete(e.withoutValues, name)
	}
	if len(e.fields) == 0 {
		return fmt.Errorf("a dataset needs a column, and these are all: %q", names)
	}
	return nil
}

// Rename gives a column another name. The column's files and arrays keep their names, under which earlier generations
// list them. Fields whose images are in the column refer to the new name.
func (e *Editing) Rename(name, to string) error {
	i, err := e.find(name)
	if err != nil {
		return err
	}
	if e.Base.Schema().Index(to) >= 0 {
		return layout.WithMark(fmt.Errorf("it has a column %q already", to), store.ErrExist)
	}
	e.fields[i].Name = to
	e.fields[i].array.rename(name, to)
	for _, files := range e.fields[i].files {
		for k := range files {
			files[k].Field = to
		}
	}
	if words, some := e.withoutValues[name]; some {
		delete(e.withoutValues, name)
		e.withoutValues[to] = words
	}
	for k := range e.fields {
		if e.fields[k].Image == name {
			e.fields[k].Image = to
		}
	}
	return nil
}

func fieldNames(m *store.Manifest) string {
	text := ""
	for i, f := range m.Fields {
		if i > 0 {
			text += ", "
		}
		text += f.Name
	}
	return text
}
