package feed

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/expr"
)

// keep returns the records for which the expression Where holds, or nil without an expression. An
// empty selection is an error, since an epoch without batches would look like a hang.
func (o *Options) keep(ctx context.Context, src loader.Source) ([]int, error) {
	if o.Where == "" {
		return nil, nil
	}
	set, err := expr.Find(ctx, src, o.Where)
	if err != nil {
		return nil, err
	}
	if set.Count() == 0 {
		return nil, fmt.Errorf("the filters keep none of %d records", set.Len())
	}
	return slices.AppendSeq(make([]int, 0, set.Count()), set.All()), nil
}
