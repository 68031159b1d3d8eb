package write

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// storedField describes a field's arrays in the manifest of a dataset in Zarr or HDF5.
type storedField struct {
	name     string                    // of the array, or the group of a ragged field
	metadata map[string]string         // the checksums of its metadata, by path
	storage  map[string]*store.Storage // by column
}

// storedIn returns the names, the checksums and the compression that a manifest lists for a field's arrays. The
// metadata of the groups above the arrays belongs to the field, too: readers compare the checksum of every file of
// metadata.
func storedIn(m *store.Manifest, f store.Field) storedField {
	s := storedField{cmp.Or(m.Arrays[f.Name], f.Name), make(map[string]string), make(map[string]*store.Storage)}
	folders := []string{s.name}
	for above := range layout.Groups(s.name) {
		folders = append(folders, above)
	}
	for _, c := range layout.Columns([]tensor.Spec{f.Spec}) {
		c.Stored = s.name
		folders = append(folders, c.Path()[1:], c.SumsPath()[1:])
		if storage := m.Storage[c.Name]; storage != nil {
			s.storage[c.Name] = storage
		}
	}
	for file, crc := range m.Metadata {
		if slices.Contains(folders, path.Dir(file)) {
			s.metadata[file] = crc
		}
	}
	return s
}

// rename changes the names of columns after their field was renamed. The arrays keep their names.
func (s *storedField) rename(from, to string) {
	storage := make(map[string]*store.Storage)
	for column, how := range s.storage {
		storage[to+strings.TrimPrefix(column, from)] = how
	}
	s.storage = storage
}

// putArrays replaces the names of arrays, for fields whose array has another name, and the checksums of metadata in m.
func (e *Editing) putArrays(m *store.Manifest) {
	m.Arrays, m.Metadata = nil, make(map[string]string)
	for _, group := range []string{"", metadataGroup, metadataGroup + "/manifest", metadataGroup + "/crc"} {
		file := path.Join(group, layout.ZarrNode)
		m.Metadata[file] = e.Base.Metadata[file]
	}
	for _, f := range e.fields {
		if f.array.name != f.Name {
			if m.Arrays == nil {
				m.Arrays = make(map[string]string)
			}
			m.Arrays[f.Name] = f.array.name
		}
		for file, crc := range f.array.metadata {
			m.Metadata[file] = crc
		}
	}
}

// putStorage replaces the descriptions of how arrays are compressed in m.
func (e *Editing) putStorage(m *store.Manifest) {
	m.Storage = nil
	for _, f := range e.fields {
		for column, how := range f.array.storage {
			AddStorage(m, column, how)
		}
	}
}
