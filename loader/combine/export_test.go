package combine

// KindOfRows says as what the record numbers of a View are kept.
func KindOfRows(v *View) string {
	switch {
	case v.t.rows.set != nil:
		return "bits"
	case v.t.rows.list != nil:
		return "numbers"
	}
	return "runs"
}
