package inspect

import (
	"context"
	"html/template"
	"math/rand/v2"

	"github.com/penstock/penstock/mmapds"
)

// Report is all that there is to show of a dataset on a page.
type Report struct {
	Summary  *Summary
	Stats    *Stats
	Albums   []Album  // of pictures; none if there is no field of them
	Pictures string   // how stored values became brightness
	Scanned  string   // how many records the extremes are of
	Rows     []*Shown // values of some records
	Reasons  []Reason // why samples were skipped, the most frequent first
	Checks   []Check
}

// Album is a group of samples.
type Album struct {
	Title string
	Note  string
	Shots []Shot
}

// Shot is the picture of a record.
type Shot struct {
	Src     template.URL // a data URL
	Text    string       // for those who do not see it
	Caption string
	Record  int
	Pixels  bool // it is small, and shown pixel by pixel
}

// Reason is a reason for which samples were skipped.
type Reason struct {
	Text    string
	Count   int64
	Example string // a sample
}

// Check is a sentence on whether something is as it should be.
type Check struct {
	Good bool
	Text string
}

// ReportOptions configures Compile. The zero value of every field but Scan is usable.
type ReportOptions struct {
	Choice
	Scan     int           // records that are looked at for extremes and duplicates, at most
	Seed     uint64        // of the random samples
	Workers  int           // that read in parallel; 0 means GOMAXPROCS
	Begin    func(n int64) // told how many values of records will be read; may be nil
	Progress func(n int64) // told of n more of them, from any goroutine; may be nil
}

// scans returns how many records are looked at, one by one.
func (o ReportOptions) scans(ds *mmapds.Dataset) int { return min(ds.Len(), o.Scan) }

func (o ReportOptions) begin(n int64) {
	if o.Begin != nil {
		o.Begin(n)
	}
}

func (o ReportOptions) progress(n int64) {
	if o.Progress != nil {
		o.Progress(n)
	}
}

// Compile reads a dataset and finds what is worth showing. The same data and options give the
// same report.
func Compile(ctx context.Context, path string, opts ReportOptions) (*Report, error) {
	ds, err := opts.open(path)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	r := &Report{}
	if r.Summary, err = Describe(path); err != nil {
		return nil, err
	}
	if !r.Summary.Penstock {
		r.Summary.Fields = nil
		r.Summary.describe(ds.Files())
	}
	stats := StatsOptions{Choice: opts.Choice, Workers: opts.Workers, Progress: opts.progress, Begin: func(n int64) {
		opts.begin(n + int64(opts.scans(ds)))
	}}
	if r.Stats, err = survey(ctx, path, ds, stats); err != nil {
		return nil, err
	}
	c := &compiler{report: r, ds: ds, opts: opts, rng: rand.New(rand.NewPCG(opts.Seed, 0))}
	for _, step := range []func(context.Context) error{c.pictures, c.rows, c.verify} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	r.Reasons = reasonsOf(r.Summary.Skipped)
	r.checkFigures()
	return r, nil
}
