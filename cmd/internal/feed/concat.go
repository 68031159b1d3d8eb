package feed

import (
	"fmt"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/store"
)

// concat joins the records of several datasets into one Source, and returns their common fields.
func concat(paths []string, datasets []*dataset) (loader.Source, []store.Field, error) {
	sources, fields := make([]loader.Source, len(datasets)), make([][]store.Field, len(datasets))
	for i, ds := range datasets {
		sources[i], fields[i] = ds.src, ds.fields
	}
	common, err := views.Common(paths, fields)
	if err != nil {
		return nil, nil, fmt.Errorf("feed: %w", err)
	}
	joined, err := combine.NewConcat(sources...)
	return joined, common, err
}
