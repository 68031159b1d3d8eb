package combine

// Bounds returns the limits of a field in its Source, of all its records even if the View has only some.
func (v *View) Bounds(field string, first, end int) (low, high float64, ok bool) {
	p, name, err := v.field(field)
	if err != nil || p.can.Bounded == nil {
		return 0, 0, false
	}
	if !v.rows.all() {
		first, end = 0, p.Len()
	}
	return p.can.Bounded.Bounds(name, first, end)
}

// Bounds returns the limits of a field in the Sources that have records [first, end).
func (c *Concat) Bounds(field string, first, end int) (low, high float64, ok bool) {
	known := true
	err := c.each(field, first, end, func(m *member, field string, a, b int) error {
		if m.can.Bounded == nil {
			known = false
			return nil
		}
		l, h, is := m.can.Bounded.Bounds(field, a, b)
		known = known && is
		if !ok || l < low {
			low = l
		}
		if !ok || h > high {
			high = h
		}
		ok = true
		return nil
	})
	return low, high, ok && known && err == nil
}
