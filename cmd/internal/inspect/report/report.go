// Package report is inspect report: an HTML page about the data.
package report

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/cmd/internal/inspect/render"
	"github.com/penstock/penstock/cmd/internal/inspect/show"
	"github.com/penstock/penstock/cmd/internal/inspect/stats"
	"github.com/penstock/penstock/cmd/internal/inspect/summary"
	"github.com/penstock/penstock/mmapds"
)

// Report is the content of a dataset's page.
type Report struct {
	Summary  *summary.Summary
	Stats    *stats.Stats
	Albums   []Album        // of pictures; none if there is no field of them
	Legend   []render.Entry // colors of the classes on pictures; nil if nothing lies on them
	Pictures string         // how stored values became brightness
	Scanned  string         // how many records the extremes are of
	Pairs    []Pair         // records that look alike, the most alike first
	Rows     []*show.Record // values of some records
	Reasons  []Reason       // why samples were skipped, the most frequent first
	Checks   []Check
}

// findings is the JSON form of a report.
type findings struct {
	Path    string  `json:"path"`
	Records int64   `json:"records"`
	Checks  []Check `json:"checks"`
	Pairs   []Pair  `json:"near_duplicates"`
}

func (r *Report) findings() findings {
	return findings{r.Summary.Path, r.Stats.Records, slices.Clone(r.Checks), append([]Pair{}, r.Pairs...)}
}

// Album is a group of samples.
type Album struct {
	Title      string
	Note       string
	Thumbnails []Thumbnail
}

// Thumbnail is the picture of a record.
type Thumbnail struct {
	Src     string // a data URL
	Text    string // for those who do not see it
	Caption string
	Source  string // name of the sample that the record was built from
	Record  int
	Pixels  bool   // it is small, and shown pixel by pixel
	ID      string // what links on the page lead to
}

// Pair is two records that look alike.
type Pair struct {
	Records  [2]int    `json:"records"`
	Sources  [2]string `json:"sources"`  // names of their samples; "" if the dataset has none
	Splits   [2]string `json:"splits"`   // that they are in; "" without splits
	Distance float64   `json:"distance"` // mean difference of brightness, 0 to 255
	Links    [2]string `json:"-"`        // to their pictures on the page; "" where there are none
}

// Reason is a reason for which samples were skipped.
type Reason struct {
	Text    string
	Count   int64
	Example string // a sample
}

// Check is a sentence on whether something is as it should be.
type Check struct {
	Good bool   `json:"good"`
	Text string `json:"text"`
}

// Options configures Compile. The zero value of every field but Scan is usable.
type Options struct {
	dataset.Selection
	Scan     int           // records that are looked at for extremes and duplicates, at most
	Seed     uint64        // of the random samples
	Workers  int           // that read in parallel; 0 means GOMAXPROCS
	Begin    func(n int64) // called with how many values of records will be read; may be nil
	Progress func(n int64) // called with n more of them, from any goroutine; may be nil
}

// scans returns how many records are looked at, one by one.
func (o Options) scans(ds *mmapds.Dataset) int { return min(ds.Len(), o.Scan) }

func (o Options) begin(n int64) {
	if o.Begin != nil {
		o.Begin(n)
	}
}

func (o Options) progress(n int64) {
	if o.Progress != nil {
		o.Progress(n)
	}
}

// Make reads a dataset and finds what is worth showing. The same data and options give the
// same report.
func Make(ctx context.Context, path string, opts Options) (*Report, error) {
	ds, err := opts.Open(path)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	r := &Report{}
	if r.Summary, err = summary.Describe(path); err != nil {
		return nil, err
	}
	if !r.Summary.Penstock {
		r.Summary.Fields = nil
		r.Summary.DescribeFields(ds.Files())
	}
	surveyed := stats.Options{Selection: opts.Selection, Workers: opts.Workers, Progress: opts.progress,
		Begin: func(n int64) {
			opts.begin(n + int64(opts.scans(ds)))
		}}
	if r.Stats, err = stats.ComputeOpen(ctx, path, ds, surveyed); err != nil {
		return nil, err
	}
	c := &builder{report: r, ds: ds, opts: opts, rng: rand.New(rand.NewPCG(opts.Seed, 0))}
	for _, step := range []func(context.Context) error{c.pictures, c.rows, c.verify} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	r.Reasons = reasonsOf(r.Summary.Skipped)
	r.checkFigures()
	return r, nil
}
