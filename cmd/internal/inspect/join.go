package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/prepare/raw"
)

const joinLong = `Find the records of two datasets that have the same key, list those without a match,
or write a view of the fields of both side by side, in the order of LEFT. RIGHT may contain each key
only once. A key is an integer, a label or a string; "source_name" is the name of a record's sample.`

const joinExamples = `  inspect join out/flat weights --on labels --many
  inspect join out/flat weights --on labels --many --json | jq .left_unmatched
  inspect join out/flat weights --on labels --many --how left --fill weight=0 -o weighted.view.json`

// joinFlags holds the flags of join. The embedded Join goes into the view as it is.
type joinFlags struct {
	combine.Join
	how    string
	fill   map[string]string
	output string
}

// joinCommand returns the command inspect join.
func joinCommand() *cobra.Command {
	var f joinFlags
	cmd := cli.Command(&cobra.Command{
		Use: "join [flags] LEFT RIGHT", Short: "Match the records of two datasets", Long: joinLong, Example: joinExamples,
		PreRunE: func(_ *cobra.Command, args []string) error { return cli.Usage(f.problems(args)...) },
		RunE:    f.run,
	})
	flags := cmd.Flags()
	flags.StringVar(&f.On, "on", "", "match by this `FIELD`")
	flags.StringVar(&f.RightOn, "right-on", "", "`FIELD` of RIGHT (default the field of --on)")
	flags.StringVar(&f.how, "how", "inner", "records of LEFT without a match: inner leaves them out, left keeps them")
	flags.BoolVar(&f.Many, "many", false, "let several records of LEFT have the same key")
	flags.StringToStringVar(&f.fill, "fill", nil,
		"with --how left: `FIELD=VALUE,...` of RIGHT without a match; no value is no rows")
	flags.StringVarP(&f.output, "output", "o", "", "write a view of both to `FILE`.view.json")
	cli.JSONFlag(cmd)
	return cmd
}

// problems returns the problems of the arguments and flags, a sentence each. It also sets How,
// and makes room for the values that setFill parses when RIGHT is open.
func (f *joinFlags) problems(args []string) (list []string) {
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		list = append(list, fmt.Sprintf("needs two arguments, LEFT and RIGHT, not %d", len(args)))
	}
	if f.On == "" {
		list = append(list, "--on FIELD is required")
	}
	if f.output != "" && !views.Is(f.output) {
		list = append(list, fmt.Sprintf("-o %s: the name of a view ends with %s", f.output, views.Suffix))
	}
	if f.How = combine.JoinKind(f.how); f.fill != nil {
		f.Fill = make(map[string]any)
	}
	return list
}

// setFill parses the values of --fill. The type of the field of RIGHT decides: "7" is a text in a
// field of texts, and a number in any other field.
func (f *joinFlags) setFill(right loader.Source) {
	for name, text := range f.fill {
		f.Fill[name] = value(text)
		for _, spec := range right.Specs() {
			if spec.Name == name && spec.IsBytes() && text != "" {
				f.Fill[name] = text
			}
		}
	}
}

// value returns the JSON value of a text: a number, an empty list for "", or the text itself. NaN
// and infinities stay texts, because JSON has no numbers for them.
func value(text string) any {
	if text == "" {
		return []any{}
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && x-x == 0 { // finite
		return x
	}
	return text
}

// joinResult describes the matched records, as --json prints it.
type joinResult struct {
	Records        int    `json:"records"` // of the view
	Matched        int    `json:"matched"`
	LeftRecords    int    `json:"left_records"`
	RightRecords   int    `json:"right_records"`
	LeftUnmatched  []int  `json:"left_unmatched"`
	RightUnmatched []int  `json:"right_unmatched"`
	View           string `json:"view,omitempty"`
}

// run joins the datasets and prints or writes the result.
func (f *joinFlags) run(cmd *cobra.Command, args []string) error {
	r, node, err := f.match(cmd.Context(), args)
	if err != nil {
		return err
	}
	if r.View = f.output; r.View != "" {
		if err := dataset.WriteView(r.View, node); err != nil {
			return err
		}
	}
	return cli.Print(cmd, r, r.Render)
}

// match opens both sides and joins them by their keys, without reading any other field. node is the
// join as a view.
func (f *joinFlags) match(ctx context.Context, args []string) (r *joinResult, node *views.Node, err error) {
	node = &views.Node{Match: &f.Join}
	var sides [2]*views.Dataset
	for i, path := range args {
		if sides[i], err = views.Open(ctx, path, views.Options{Open: raw.OpenPart}); err != nil {
			return nil, nil, err
		}
		side := sides[i]
		defer func() { err = errors.Join(err, side.Close()) }()
		node.Join = append(node.Join, dataset.Node(path, side))
	}
	f.setFill(sides[1].Source)
	v, found, err := combine.NewJoin(ctx, sides[0].Source, sides[1].Source, f.Join)
	if err != nil {
		return nil, nil, err
	}
	r = &joinResult{Records: v.Len(), LeftRecords: sides[0].Source.Len(), RightRecords: sides[1].Source.Len(),
		LeftUnmatched: append([]int{}, found.Left...), RightUnmatched: append([]int{}, found.Right...)}
	r.Matched = r.LeftRecords - len(found.Left)
	return r, node, nil
}

// Render prints the number of matches and the first records without a match.
func (r *joinResult) Render(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s have a match\n", units.Count(int64(r.Matched)),
		units.Counted(int64(r.LeftRecords), "record"))
	r.side(&b, "left", r.LeftUnmatched)
	r.side(&b, "right", r.RightUnmatched)
	if r.View != "" {
		fmt.Fprintf(&b, "view of %s: %s\n", units.Counted(int64(r.Records), "record"), shell.Line(r.View))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mostJoined is the number of unmatched records that are listed for people.
const mostJoined = 10

// side lists the first unmatched records of a side.
func (r *joinResult) side(b *strings.Builder, name string, records []int) {
	if len(records) == 0 {
		return
	}
	more := ""
	if len(records) > mostJoined {
		more = ", ..."
	}
	list := make([]string, min(len(records), mostJoined))
	for i := range list {
		list[i] = strconv.Itoa(records[i])
	}
	fmt.Fprintf(b, "%s without a match, %s: %s%s\n", name, units.Counted(int64(len(records)), "record"),
		strings.Join(list, ", "), more)
}
