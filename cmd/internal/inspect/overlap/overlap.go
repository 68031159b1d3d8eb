// Package overlap is inspect overlap: the elements of arrays that windows of several views have in common.
package overlap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/views"
)

// Report is the overlap of views of windows.
type Report struct {
	Views []View `json:"views"`
	Pairs []Pair `json:"pairs"`
}

// View is one of the views.
type View struct {
	Path    string `json:"path"`
	Windows int    `json:"windows"`
}

// Pair is the overlap of the windows of two views, by field.
type Pair struct {
	A        string            `json:"a"`
	B        string            `json:"b"`
	Overlaps []combine.Overlap `json:"overlaps"`
}

// Compare opens views of windows, and compares each with each. It reads no records.
func Compare(ctx context.Context, paths []string) (r *Report, err error) {
	r = new(Report)
	var windows []*combine.Windows
	for _, path := range paths {
		ds, err := views.Open(ctx, path, views.Options{})
		if err != nil {
			return nil, err
		}
		defer ds.Close()
		ws, ok := ds.Source.(*combine.Windows)
		if !ok {
			return nil, fmt.Errorf("%s: not a view of windows, whose elements could overlap", shell.Line(path))
		}
		windows = append(windows, ws)
		r.Views = append(r.Views, View{path, ws.Len()})
	}
	for i := range windows {
		for k := i + 1; k < len(windows); k++ {
			list, err := combine.Overlaps(windows[i], windows[k])
			if err != nil {
				return nil, fmt.Errorf("%s and %s: %w", shell.Line(paths[i]), shell.Line(paths[k]), err)
			}
			r.Pairs = append(r.Pairs, Pair{paths[i], paths[k], list})
		}
	}
	return r, nil
}

// Render prints the report for people.
func (r *Report) Render(w io.Writer) error {
	var b strings.Builder
	list := cli.Table{}
	for _, v := range r.Views {
		list.Add(shell.Line(v.Path), units.Counted(int64(v.Windows), "window"))
	}
	b.WriteString(list.String())
	for _, p := range r.Pairs {
		fmt.Fprintf(&b, "\n%s and %s\n", shell.Line(p.A), shell.Line(p.B))
		if len(p.Overlaps) == 0 {
			b.WriteString("  have no array in common\n")
		}
		t := cli.Table{Indent: 2}
		for _, o := range p.Overlaps {
			elements := units.Counted(o.Elements[0], "element") + " and " + units.Count(o.Elements[1]) + " of " + o.Array
			t.Add(o.Fields[0]+", "+o.Fields[1], elements, units.Count(o.Shared)+" in both")
		}
		b.WriteString(t.String())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Err returns an error if windows of two views share elements.
func (r *Report) Err() error {
	for _, p := range r.Pairs {
		for _, o := range p.Overlaps {
			if o.Shared > 0 {
				return errors.New("windows of two views share elements, so that a validation set would have values of the " +
					"training set; split by ranges, blocks or groups (windows.partition in Python), with a gap if values next to " +
					"each other are alike")
			}
		}
	}
	return nil
}
