//go:build cgo

package hdf5

import (
	"fmt"

	"github.com/penstock/penstock/store"
)

// verify opens the finished file once more and compares where its records are with where
// they were written.
func (s *staged) verify(m *store.Manifest) error {
	return session(s.path, false, smallAlign, func(f file) error {
		for i, field := range m.Fields {
			var c column
			if err := c.place(f, payload(field, m.Records)); err != nil {
				return err
			}
			if c.start != s.fields[i].values.start {
				return fmt.Errorf("field %q: its bytes moved from %#x to %#x", field.Name, s.fields[i].values.start, c.start)
			}
		}
		return nil
	})
}
