package summary

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// View describes a .view.json file.
type View struct {
	Path     string        `json:"path"`
	Kind     string        `json:"kind"` // "select", "zip", "concat", "window", "join", "derive" or "dataset"
	Records  int           `json:"records"`
	ID       string        `json:"id,omitempty"`
	Fields   []store.Field `json:"fields"`
	Datasets []string      `json:"datasets"` // their paths or URLs, in the order of the view
}

// DescribeView opens a view and its datasets. It reads no records.
func DescribeView(ctx context.Context, path string) (*View, error) {
	n, err := views.Read(path)
	if err != nil {
		return nil, err
	}
	v := &View{Path: path, Kind: n.Kind()}
	n.Datasets(func(p *string) { v.Datasets = append(v.Datasets, remote.RedactURLs(*p)) })
	ds, err := views.Open(ctx, path, views.Options{Open: raw.OpenPart})
	if err != nil {
		return nil, err
	}
	v.Records, v.Fields = ds.Source.Len(), ds.Fields
	if id, ok := ds.Source.(loader.Identifier); ok {
		v.ID = id.ID()
	}
	return v, ds.Close()
}

// Render prints the view.
func (v *View) Render(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", shell.Line(v.Path))
	t := cli.Table{Indent: 2}
	t.Add("format", "a view ("+v.Kind+"), which holds no data")
	t.Add("records", units.Count(int64(v.Records)))
	if v.ID != "" {
		t.Add("id", v.ID)
	}
	for _, path := range v.Datasets {
		t.Add("of", path)
	}
	b.WriteString(t.String())
	b.WriteString(fieldsText(v.Fields))
	_, err := io.WriteString(w, b.String())
	return err
}
