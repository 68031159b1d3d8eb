package mmapds

import "github.com/penstock/penstock/store"

// Intact returns an error, a [ReadError], if a file does not have all of its records any more, as it was
// truncated since it was opened. Reads of pages that are gone are errors of their own; the rest of the
// last page of such a file reads as zeros. It costs a system call for each file.
func (d *Dataset) Intact() error {
	if d.fetches() {
		return nil
	}
	for i := range d.columns {
		c := &d.columns[i]
		for k := range c.segments {
			s := &c.segments[k]
			if at, lost := s.of.Lost(s.from, s.from+len(s.data)); lost {
				return d.lost(c, s.first+(at-s.from)/c.size, store.ErrCorrupt)
			}
		}
	}
	return nil
}
