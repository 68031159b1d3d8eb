//go:build cgo

package hdf5

import "github.com/penstock/penstock/store"

// rootAttributes says what the file is. The last one, complete, is not among them: it comes
// when all else is in the file.
func rootAttributes(m *store.Manifest) []store.Attribute {
	return []store.Attribute{
		store.TextAttribute("format", m.Format),
		store.IntegerAttribute("format_version", int64(m.Version)),
		store.IntegerAttribute("num_samples", m.Records),
	}
}

// finishFile adds the manifest and the attributes to the structure and marks the file
// complete.
func (s *staged) finishFile(m *store.Manifest) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	if err := s.reserve(int64(len(data)) + attributeBytes(m) + slack); err != nil {
		return err
	}
	return session(s.path, changing, smallAlign, func(f file) error {
		if err := describeAll(f, m, data); err != nil {
			return err
		}
		if err := f.flush(); err != nil {
			return err
		}
		return onRoot(f, []store.Attribute{store.IntegerAttribute("complete", 1)})
	})
}

// attributeBytes bounds what the attributes take, beside a small amount for each field.
func attributeBytes(m *store.Manifest) int64 {
	n := int64(0)
	for _, f := range m.Fields {
		n += 4096
		for _, a := range f.Attributes() {
			n += 2 * int64(len(a.Data))
		}
	}
	return n
}

func describeAll(f file, m *store.Manifest, manifest []byte) error {
	d := dataset{path: manifestPath, elem: element{text: len(manifest)}}
	if err := d.create(f, manifest); err != nil {
		return err
	}
	groups := make(map[string]bool)
	for _, field := range m.Fields {
		if err := describeField(f, field, groups); err != nil {
			return err
		}
	}
	return onRoot(f, rootAttributes(m))
}

// describeField writes the attributes of a field, of a ragged one to its values, and as
// datasets those which are too long. Groups are the ones for such datasets that were made.
func describeField(f file, field store.Field, groups map[string]bool) error {
	name := "/" + field.Name
	if field.Ragged {
		name += "/" + string(store.Values)
	}
	h, err := f.h.OpenDataset(name)
	if err != nil {
		return gonumFailed("open " + name)
	}
	defer h.Close()
	for _, a := range field.Attributes() {
		if a.Fits() {
			if err := writeAttribute(h, &a); err != nil {
				return err
			}
			continue
		}
		group := booksGroup + "/" + a.Name
		if !groups[group] {
			if err := createGroup(f, group); err != nil {
				return err
			}
			groups[group] = true
		}
		d := dataset{path: group + "/" + field.Name, elem: elementOf(&a), dims: []int64{int64(a.Count)}}
		if err := d.create(f, a.Data); err != nil {
			return err
		}
	}
	return nil
}

func onRoot(f file, list []store.Attribute) error {
	root, err := f.h.OpenGroup("/")
	if err != nil {
		return gonumFailed("open /")
	}
	defer root.Close()
	for i := range list {
		if err := writeAttribute(root, &list[i]); err != nil {
			return err
		}
	}
	return nil
}
