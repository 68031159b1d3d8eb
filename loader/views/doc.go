// Package views opens .view.json files: a few lines of JSON that say which records and fields of which
// datasets are one dataset. They hold no data.
//
//	{"penstock": "view", "version": 1, "select": {"dataset": "photos"}, "ranges": [[0, 50000]]}
//
//	ds, err := views.Open(ctx, "half.view.json", views.Options{})
//	...
//	defer ds.Close()
//	ld, err := loader.New(ds.Source, loader.Options{BatchSize: 256})
//
// The form is specified in docs/format.md. Package combine has the Sources that it stands for, for programs that
// have opened the datasets themselves.
package views
