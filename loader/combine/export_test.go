package combine

import (
	"context"

	"github.com/penstock/penstock/loader"
)

// KindOfRows says as what the record numbers of a View are kept.
func KindOfRows(v *View) string {
	switch {
	case v.rows.set != nil:
		return "set"
	case v.rows.list != nil:
		return "numbers"
	}
	return "runs"
}

// Translate returns the records of the Source that some places of a View are.
func Translate(v *View, dst, places []int) []int { return v.rows.translate(dst, places) }

// NewJoinInParts is NewJoin with at most part records of the right side in memory at a time.
func NewJoinInParts(ctx context.Context, left, right loader.Source, j Join, part int) (*View, *Matches, error) {
	return newJoin(ctx, left, right, j, part)
}

// Limits are those that docs/format.md has, by how their rows begin.
var Limits = map[string]int{"records": maxRecords, "expressions": maxWork, "`sizes`": maxElements}
