package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/penstock/penstock/internal/layout"
)

// maxBytes limits the bytes of a column that a manifest claims. No column has as many, and offsets below it cannot
// overflow.
const maxBytes = 1 << 62

// Validate checks everything that can be checked without the files. Names and numbers come from a file that anybody may
// have written, and are safe to use as paths, offsets and sizes only afterwards.
func (m *Manifest) Validate() error {
	if m.Records < 1 || m.Records > layout.MaxRecords {
		return fmt.Errorf("%d records", m.Records)
	}
	if err := m.Schema().Validate(); err != nil {
		return err
	}
	for _, f := range m.Fields {
		if !f.Ragged && m.Records > maxBytes/int64(f.RecordBytes()) {
			return fmt.Errorf("field %q: %d records of %d bytes are more than any file", f.Name, m.Records, f.RecordBytes())
		}
	}
	if err := m.checkSplits(); err != nil {
		return err
	}
	if err := m.Deleted.check(m.Records); err != nil {
		return err
	}
	for name := range m.Metadata {
		if path.Base(name) != layout.ZarrNode || !fs.ValidPath(name) {
			return fmt.Errorf("%q is not a file of metadata", name)
		}
	}
	if err := m.checkArrays(); err != nil {
		return err
	}
	if len(m.Shards) == 0 {
		return nil
	}
	return m.checkShards()
}

// checkArrays checks that every renamed array belongs to a field, and that no two fields share an array.
func (m *Manifest) checkArrays() error {
	stored := make(map[string]string)
	for _, f := range m.Fields {
		stored[cmp.Or(m.Arrays[f.Name], f.Name)] = f.Name
	}
	for field, name := range m.Arrays {
		if !layout.IsStored(name) || stored[name] != field {
			return fmt.Errorf("field %q cannot have the array %q", field, name)
		}
	}
	if len(stored) < len(m.Fields) {
		return errors.New("two fields have one array")
	}
	return nil
}

// checkSplits makes sure that each record is in exactly one split, if there are splits.
func (m *Manifest) checkSplits() error {
	if len(m.Splits) == 0 {
		return nil
	}
	if err := layout.CheckSplitNames(m.SplitNames()); err != nil {
		return err
	}
	var all [][2]int64
	for _, s := range m.Splits {
		if !slices.IsSortedFunc(s.Ranges, compareRanges) {
			return fmt.Errorf("split %q: its ranges are not in order", s.Name)
		}
		all = append(all, s.Ranges...)
	}
	slices.SortFunc(all, compareRanges)
	next := int64(0)
	for _, r := range all {
		if r[0] != next || r[1] <= r[0] {
			return fmt.Errorf("splits: records [%d, %d) do not follow record %d", r[0], r[1], next)
		}
		next = r[1]
	}
	if next != m.Records {
		return fmt.Errorf("splits hold %d records, the manifest says %d", next, m.Records)
	}
	return nil
}

func compareRanges(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) }

// SplitNames returns the names of the splits, in order; nil without splits.
func (m *Manifest) SplitNames() []string {
	var names []string
	for _, s := range m.Splits {
		names = append(names, s.Name)
	}
	return names
}

// checkShards makes sure that the shards cover the records [0, Records) once, and that each shard names for every
// column a payload and a checksum file of the right size, by a plain file name: a name with a path could read files
// outside of the dataset.
func (m *Manifest) checkShards() error {
	columns := layout.Columns(m.Schema().Specs())
	names := make(map[string]bool, 2*len(columns)*len(m.Shards))
	var next int64
	for i, s := range m.Shards {
		if s.First != next || s.Count < 1 || s.Count > m.Records-next {
			return fmt.Errorf("shard %d: records [%d, +%d) do not follow record %d of %d", i, s.First, s.Count, next, m.Records)
		}
		next += s.Count
		if err := layout.CheckFiles(s, columns, i); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		for _, f := range s.Files {
			if names[f.Name] {
				return fmt.Errorf("shard %d: %s is listed twice", i, f.Name)
			}
			names[f.Name] = true
		}
	}
	if next != m.Records {
		return fmt.Errorf("shards hold %d records, the manifest says %d", next, m.Records)
	}
	return nil
}
