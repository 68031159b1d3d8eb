// Package diff has the command diff, which says whether two datasets, or a dataset and its raw
// samples, are the same.
//
// Compare opens both, finds the pairs of records that correspond, and returns a [Comparison]. Two
// generations of one dataset are paired by the place at which a record is stored, so that one
// deleted record is one difference and not a shift of all later records. Other datasets are paired
// by source names if these are unique, and otherwise by position. Fields are then compared value by
// value, within a tolerance that the caller may give, by several goroutines that each compare a
// range of pairs.
package diff

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// Comparison is the result of Compare, as --json prints it.
type Comparison struct {
	A           string       `json:"a"`
	B           string       `json:"b"`
	Same        bool         `json:"same"`
	Tolerance   float64      `json:"tolerance"`
	Records     int64        `json:"records"`     // pairs of records, whose values were compared
	By          string       `json:"by"`          // what made records a pair: "stored place", "source name" or "position"
	Deleted     Unmatched    `json:"deleted"`     // records that only a has
	Added       Unmatched    `json:"added"`       // records that only b has
	Differences []Difference `json:"differences"` // in everything but values
	Values      []ValueDiff  `json:"values"`      // of each field that both have, also without a difference
	Notes       []string     `json:"notes"`       // sentences: what was not compared
	a, b        subject
	pairs       pairs

	// names maps a field's name in a to its name in b, if both are generations of one dataset; otherwise nil
	names map[string]string
}

// subject is one of the two sides: a dataset or raw samples.
type subject struct {
	records
	io.Closer
	manifest *store.Manifest // nil if penstock did not write it
}

// records are values with the source names of records.
type records interface {
	dataset.Records
	SourceName(ctx context.Context, record int) (string, error)
}

// open opens a dataset or, where none can be mapped, the raw samples at path, such as a folder of
// photos or an HDF5 file of another program.
func open(ctx context.Context, path string, s dataset.Selection) (subject, error) {
	var refused error
	if !raw.Is(path) {
		ds, err := s.Open(path)
		if err == nil {
			return subject{ds, ds, ds.Manifest()}, nil
		}
		if !raw.Instead(path, err) {
			return subject{}, err
		}
		refused = err
	}
	src, err := raw.Open(ctx, path, raw.Options{Fields: s.Fields, Split: s.Split})
	if err != nil {
		return subject{}, cmp.Or(refused, err)
	}
	return subject{src, src, nil}, nil
}

// Difference is something other than a value that differs.
type Difference struct {
	What  string `json:"what"` // "records", "fields", "type", "classes", "splits", "statistics", "recipe", ...
	Field string `json:"field,omitempty"`
	A     string `json:"a"`
	B     string `json:"b"`
}

// ValueDiff describes the differences in the values of a field.
type ValueDiff struct {
	Field    string  `json:"field"`
	Records  int64   `json:"records"`                // records that differ
	First    *int64  `json:"first_record,omitempty"` // the first of them, by its number in a; nil if there is none
	Elements int64   `json:"elements"`               // elements that differ, in records of equal length
	Lengths  int64   `json:"lengths,omitempty"`      // records whose lengths differ
	Largest  float64 `json:"largest_difference"`     // between two finite numbers
}

// Options configures Compare. The zero value is usable.
type Options struct {
	dataset.Selection
	Tolerance float64       // numbers that are at most this far apart are equal
	Data      bool          // compare only what a training sees: fields, splits and values
	Origins   []string      // the arguments as they were given, with URLs; nil if they are the paths
	Workers   int           // goroutines that read; 0 means GOMAXPROCS
	Begin     func(n int64) // called with how many values of records will be compared; may be nil
	Progress  func(n int64) // called with n more of them, from any goroutine; may be nil
}

// Compare compares two datasets. The format makes no difference: a flat folder and an HDF5 file of
// the same data are the same. Compare needs about 8 MiB per worker and, if the records of the
// datasets are in different orders, memory for the source names.
func Compare(ctx context.Context, a, b string, opts Options) (*Comparison, error) {
	c := &Comparison{A: a, B: b, Tolerance: opts.Tolerance, Differences: []Difference{}, Values: []ValueDiff{},
		Notes: []string{}, Deleted: Unmatched{First: []Record{}}, Added: Unmatched{First: []Record{}}}
	var err error
	if c.a, err = open(ctx, a, opts.Selection); err != nil {
		return nil, err
	}
	defer c.a.Close()
	if c.b, err = open(ctx, b, opts.Selection); err != nil {
		return nil, err
	}
	defer c.b.Close()
	from, to, err := generations(a, b, opts.Origins)
	if err == nil && from != nil {
		c.names, err = dataset.Renamed(layout.Folder(a), from.Generation, to.Generation)
	}
	if err == nil {
		err = c.match(ctx, from, to)
	}
	if err != nil {
		return nil, err
	}
	c.Records = int64(c.pairs.n)
	c.differ("records", "", fmt.Sprint(c.a.Len()), fmt.Sprint(c.b.Len()))
	fields := c.fields()
	c.manifests(opts)
	if opts.Begin != nil {
		opts.Begin(c.Records * int64(len(fields)))
	}
	for _, f := range fields {
		v, err := c.values(ctx, f, opts)
		if err != nil {
			return nil, err
		}
		c.Values = append(c.Values, v)
	}
	c.Same = len(c.Differences) == 0 && c.Deleted.Records+c.Added.Records == 0 &&
		!slices.ContainsFunc(c.Values, func(v ValueDiff) bool { return v.Records > 0 })
	return c, nil
}

// differ adds a Difference if two texts differ.
func (c *Comparison) differ(what, field, a, b string) {
	if a != b {
		c.Differences = append(c.Differences, Difference{What: what, Field: field, A: a, B: b})
	}
}

// pair is a field that both datasets have.
type pair struct{ a, b store.Field }

// generations returns the manifests of both sides if they are generations of one dataset, and nil
// otherwise. A dataset from a URL is known by the URL, since its copies are in different folders.
func generations(a, b string, origins []string) (from, to *store.Manifest, err error) {
	folder, _, given := layout.SplitGeneration(a)
	other, _, too := layout.SplitGeneration(b)
	x, errX := os.Stat(folder)
	y, errY := os.Stat(other)
	here := (given || too) && errX == nil && errY == nil && os.SameFile(x, y)
	if !here && (len(origins) != 2 || urlOf(origins[0]) == "" || urlOf(origins[0]) != urlOf(origins[1])) {
		return nil, nil, nil
	}
	if from, err = store.ReadManifest(a); err != nil {
		return nil, nil, err
	}
	to, err = store.ReadManifest(b)
	return from, to, err
}

// urlOf returns the URL of a dataset without options and generation; "" if text is not a URL.
func urlOf(text string) string {
	u, err := remote.ParseURL(text)
	if err != nil {
		return ""
	}
	key := u.Key
	if i := strings.LastIndexByte(key, '@'); i > 0 && layout.IsName(key[i+1:]) {
		key = key[:i]
	}
	return fmt.Sprintf("%s://%s/%s", u.Scheme, u.Bucket, key)
}

// paired returns the fields that both datasets have: by name or, in generations of one dataset, by
// the history of the column.
func (c *Comparison) paired() (out []pair) {
	other, taken := c.b.Schema(), slices.Collect(maps.Values(c.names))
	for _, f := range c.a.Schema().Fields {
		name, ok := c.names[f.Name]
		if !ok && !slices.Contains(taken, f.Name) {
			name = f.Name
		}
		if k := other.Index(name); k >= 0 {
			out = append(out, pair{f, other.Fields[k]})
		}
	}
	return out
}

// fields compares the schemas and returns the fields whose values can be compared: records must
// have one shape. Values of different types are compared as numbers.
func (c *Comparison) fields() (out []pair) {
	both := c.paired()
	for _, f := range c.b.Schema().Fields {
		if !slices.ContainsFunc(both, func(p pair) bool { return p.b.Name == f.Name }) {
			c.differ("fields", f.Name, "not there", fieldText(f))
		}
	}
	for _, f := range c.a.Schema().Fields {
		if !slices.ContainsFunc(both, func(p pair) bool { return p.a.Name == f.Name }) {
			c.differ("fields", f.Name, fieldText(f), "not there")
		}
	}
	for _, p := range both {
		c.differ("name", p.a.Name, p.a.Name, p.b.Name)
		c.differ("type", p.a.Name, fieldText(p.a), fieldText(p.b))
		if p.a.Ragged == p.b.Ragged && slices.Equal(p.a.Shape, p.b.Shape) {
			out = append(out, p)
		}
	}
	return out
}

// fieldText describes a field for a Difference, without its layout, which meanings compares.
func fieldText(f store.Field) string {
	f.Layout = "" // is compared with the manifest
	return f.DType.String() + " " + dataset.ShapeText(f.Spec)
}

// valueParts is the number of parts into which the work on a field is cut.
const valueParts = 256

// values compares the values of a field.
func (c *Comparison) values(ctx context.Context, p pair, opts Options) (ValueDiff, error) {
	n := int(c.Records)
	parts := make([]ValueDiff, max(1, min(valueParts, n)))
	err := dataset.InParts(ctx, n, len(parts), opts.Workers, func() func(context.Context, int, int, int) error {
		a, b := dataset.NewBatchReader(c.a, p.a), dataset.NewBatchReader(c.b, p.b)
		return func(ctx context.Context, part, from, to int) error {
			return parts[part].compare(ctx, a, b, &c.pairs, from, to, opts)
		}
	})
	sum := ValueDiff{Field: p.a.Name}
	for _, v := range parts {
		sum.add(v)
	}
	return sum, err
}

// add adds the result of a later part.
func (v *ValueDiff) add(o ValueDiff) {
	v.Records += o.Records
	v.Elements += o.Elements
	v.Lengths += o.Lengths
	v.Largest = max(v.Largest, o.Largest)
	if v.First == nil {
		v.First = o.First
	}
}

// compare compares pairs [from, to), a batch of each side at a time.
func (v *ValueDiff) compare(ctx context.Context, a, b *dataset.BatchReader, p *pairs, from, to int,
	opts Options) error {
	step := min(a.Step(), b.Step())
	var ofA, ofB []int
	for ; from < to; from += step {
		end := min(to, from+step)
		ofA, ofB = p.appendTo(ofA[:0], ofB[:0], from, end)
		x, err := a.ReadRecords(ctx, ofA)
		if err != nil {
			return err
		}
		y, err := b.ReadRecords(ctx, ofB)
		if err != nil {
			return err
		}
		v.records(x, y, ofA, opts.Tolerance)
		if opts.Progress != nil {
			opts.Progress(int64(end - from))
		}
	}
	return nil
}
