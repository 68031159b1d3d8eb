package mmapds

import "fmt"

// Location says where a record of a field is, for people: the file, the shard, and the first byte,
// or that of the chunk that has it. It is "" if the record does not exist. Location reads only
// the offsets of a ragged field; if these have to be fetched, it returns "".
func (d *Dataset) Location(field string, record int) string {
	if d.Retain() != nil {
		return ""
	}
	defer d.Release()
	f, err := d.field(field)
	if err != nil || checkRange(field, record, record+1, d.Len()) != nil || f.offsets != nil && d.fetches() {
		return ""
	}
	row := record
	if f.offsets != nil {
		if row, _, err = d.record(f, record); err != nil {
			return ""
		}
	}
	path, shard, at := f.rows.where(min(row, f.rows.len()-1)) // the last records may have no rows
	if path == "" {
		return ""
	}
	return fmt.Sprintf("%s, shard %d, byte %#x", path, shard, at)
}

// where returns the file of a row, the number of its extent, and its first byte or its chunk's;
// no path if there is no such row.
func (c *column) where(row int) (path string, shard int, at int64) {
	if row < 0 {
		return "", 0, 0
	}
	shard = c.extent(row)
	e := &c.meta.Extents[shard]
	return e.Path, shard, c.offset(e, row)
}
