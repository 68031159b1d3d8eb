package combine

import (
	"math"

	"github.com/penstock/penstock/loader"
)

// View is a Source of fields and records of other Sources, and stores no data: see [NewSelect] and
// [NewZip]. It has the capabilities of these Sources: consecutive records are views of their
// memory, records of a bucket are fetched ahead of time, and errors name files.
type View struct{ route }

func newView(kind string, records rows) *View {
	v := &View{}
	v.kind, v.rows, v.ends = kind, records, []int{math.MaxInt}
	v.how = func() []any { return []any{names(v.specs), v.fields, v.rows.id()} }
	return v
}

var _ loader.ChunkSource = (*View)(nil)
