package mmapds

// IsWarm reports whether Run of records [a, b) of a field is a view of pages that were brought in
// before, and of which nothing has to be checked: whether Warm would have nothing to do. It makes
// no system call and touches no memory of the file. Of packed fields, of those whose records have
// lengths of their own, and of those that WithVerify has checked, it says no.
func (d *Dataset) IsWarm(field string, a, b int) bool {
	c, err := d.column(field)
	if err != nil || c.packed != nil || c.sums != nil || d.fetches() || c.check(a, b) != nil {
		return false
	}
	if a == b {
		return true
	}
	s, at := c.find(a)
	end := at + (b-a)*c.size
	return end <= len(s.data) && s.warm.has(at, end)
}
