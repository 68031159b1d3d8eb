package mmapds

// checkPacked compares the blocks of rows [a, b) of a packed column, which have was made
// of, with their checksums. Of blocks that have other rows, too, it makes those once more.
func (d *arrays) checkPacked(c *column, a, b int, have []byte) error {
	for at := a; at < b && c.sums != nil; {
		k := c.extent(at)
		e := &c.meta.Extents[k]
		first, end := int(e.First), int(e.First+e.Count)
		if e.SumsPath == "" {
			at = end
			continue
		}
		sums, err := d.sums(c, k)
		if err != nil {
			return err
		}
		n := (at - first) / c.block
		from, to := first+n*c.block, min(first+(n+1)*c.block, end)
		if sums.due(n, c.checks) {
			data, err := c.blockRows(from, to, a, b, have)
			if err == nil {
				err = d.compare(c, k, n, at, data)
			}
			if err != nil {
				return err
			}
		}
		at = to
	}
	return nil
}

// blockRows returns rows [from, to): of rows [a, b), which are at hand, or made anew.
func (c *column) blockRows(from, to, a, b int, have []byte) ([]byte, error) {
	if a <= from && to <= b {
		return have[(from-a)*c.size : (to-a)*c.size], nil
	}
	rows := make([]byte, (to-from)*c.size)
	return rows, c.packed.run(rows, from, to)
}

// checkGathered compares what Gather made of a packed column.
func (d *arrays) checkGathered(c *column, indices []int, dst []byte) error {
	if c.sums == nil {
		return nil
	}
	for k, i := range indices {
		if err := d.checkPacked(c, i, i+1, dst[k*c.size:(k+1)*c.size]); err != nil {
			return err
		}
	}
	return nil
}
