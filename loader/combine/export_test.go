package combine

// KindOfRows says as what the record numbers of a View are kept.
func KindOfRows(v *View) string {
	switch {
	case v.t.rows.set != nil:
		return "ascending"
	case v.t.rows.list != nil:
		return "numbers"
	}
	return "runs"
}

// Translate returns the records of the Source that some places of a View are.
func Translate(v *View, dst, places []int) []int { return v.t.rows.translate(dst, places) }
