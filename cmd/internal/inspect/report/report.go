// Package report has the command inspect report, which writes an HTML page about the data.
//
// Make reads the dataset and fills a Report: the summary, statistics, albums of samples,
// near-duplicates and checks, each check a sentence that is good or bad. Report.HTML writes the
// page. The same data and options give the same bytes, so two reports can be compared. The page is
// one file without scripts.
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
	Albums   []Album        // of pictures; empty without a field that can be shown
	Legend   []render.Entry // colors of classes on pictures; nil if nothing lies on the pictures
	Pictures string         // how stored values became brightness
	Scanned  string         // which records were searched for extremes and near-duplicates
	Pairs    []Pair         // records that look alike, the most alike first
	Rows     []*show.Record // values of some records
	Reasons  []Reason       // why samples were skipped, the most frequent first
	Checks   []Check
}

// findings is the JSON form of a Report: what a program can act on.
type findings struct {
	Path    string  `json:"path"`
	Records int64   `json:"records"`
	Checks  []Check `json:"checks"`
	Pairs   []Pair  `json:"near_duplicates"`
}

// findings returns the JSON form.
func (r *Report) findings() findings {
	return findings{r.Summary.Path, r.Stats.Records, slices.Clone(r.Checks), append([]Pair{}, r.Pairs...)}
}

// Album is a group of samples.
type Album struct {
	Title      string
	Note       string
	Thumbnails []Thumbnail
}

// Thumbnail is the picture of a record on the page.
type Thumbnail struct {
	Src     string // a data URL
	Text    string // describes the picture to a screen reader
	Caption string
	Source  string // name of the sample that the record was built from
	Record  int
	Pixels  bool   // a small picture, which is shown without smoothing
	ID      string // the target of links on the page
}

// Pair is two records that look alike.
type Pair struct {
	Records  [2]int    `json:"records"`
	Sources  [2]string `json:"sources"`  // names of their samples; "" if the dataset has none
	Splits   [2]string `json:"splits"`   // the records' splits; "" without splits
	Distance float64   `json:"distance"` // mean difference of brightness, 0 to 255
	Links    [2]string `json:"-"`        // to the pictures on the page; "" if there is none
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

// Options configures Make. Scan must be positive; the zero value of all other fields is usable.
type Options struct {
	dataset.Selection
	Scan     int           // at most this many records are searched for extremes and near-duplicates
	Seed     uint64        // of the random samples
	Workers  int           // goroutines that read; 0 means GOMAXPROCS
	Begin    func(n int64) // called with how many values of records will be read; may be nil
	Progress func(n int64) // called with n more of them, from any goroutine; may be nil
}

// scans returns how many records are searched.
func (o Options) scans(ds *mmapds.Dataset) int { return min(ds.Len(), o.Scan) }

// begin calls Begin if it is set.
func (o Options) begin(n int64) {
	if o.Begin != nil {
		o.Begin(n)
	}
}

// progress calls Progress if it is set.
func (o Options) progress(n int64) {
	if o.Progress != nil {
		o.Progress(n)
	}
}

// Make reads a dataset and makes its report. It is a function of the data and the options.
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
