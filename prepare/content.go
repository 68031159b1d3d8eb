package prepare

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/kinds"
	"github.com/penstock/penstock/store"
)

// placing decides whether a sample becomes a record of a run, and in which split.
type placing struct{ run *run }

// duplicate reports whether a good sample is left out because its content was seen: in a record of the dataset that is
// appended to, or in a sample before it. Then the log counts it.
func (p placing) duplicate(s *execute.Slot) (bool, error) {
	if p.run.there != nil {
		if at, ok := p.run.there.Find(s.Stored); ok {
			return true, p.run.log.repeat(s.Sample.Name, fmt.Sprintf("its content is in the dataset already: record %d", at))
		}
	}
	if first, ok := p.run.log.before(s.Digest); ok {
		return true, p.run.log.repeat(s.Sample.Name, "an earlier sample has the same content"+p.asRecord(first))
	}
	return false, nil
}

// asRecord names the record of the dataset that has the first sample with this content: new records follow the
// existing ones. After a shuffle the numbers are not known.
func (p placing) asRecord(n int64) string {
	if p.run.config.Shuffle.Set || p.run.task.quiet || n >= samples.Unplaced {
		return ""
	}
	if p.run.base != nil {
		n += p.run.base.Records
	}
	return fmt.Sprintf(": record %d", n)
}

// splitOf returns the split of the next record, "" without splits.
func (p placing) splitOf(j *execute.Job, s *execute.Slot) (string, error) {
	if p.run.config.Split == nil {
		return s.Sample.Split, nil
	}
	splitter, class, content := p.run.log.splitter, j.Stratum.Class(s.Record), s.Digest
	if !splitter.Known(class) {
		if err := j.Stratum.CheckNumber(splitter.Classes()); err != nil {
			return "", err
		}
	}
	if j.Stored { // identifies existing records
		content = s.Stored
	}
	return splitter.Choose(s.Digest, content, class), nil
}

// labels returns the names of the fields that --fields makes labels.
func (c Config) labels() (names []string) {
	list, _ := column.ParseFields(c.Fields) // Validate has reported the error
	for _, w := range list {
		if w.Type == "label" {
			names = append(names, w.FieldName())
		}
	}
	return names
}

// knowBase reads the dataset that is appended to, where it matters what its records hold: for --dedup, and for
// --stratify, which needs their classes and splits, too.
func (p placing) knowBase(ctx context.Context, j *execute.Job) error {
	c, schema := p.run.config, store.Schema{}
	if p.run.base == nil || !c.Dedup && !c.Stratify.Wanted {
		return nil
	}
	j.Stored, schema = true, p.run.base.Schema()
	if c.Dedup {
		p.run.there = new(samples.DigestSet)
	}
	label := -1
	live, err := p.run.base.LiveSplits()
	if err != nil {
		return err
	}
	splits := splitsOf(live)
	if c.Stratify.Wanted {
		p.run.placed, label = newSplitter(c), schema.Index(j.Stratum.Name)
	}
	p.run.progress.Begin("reading existing records", p.run.base.Live(), "records")
	defer p.run.progress.End()
	return eachRecord(ctx, c, len(schema.Fields), func(at int64, values [][]byte) {
		content := execute.StoredContent(schema, values)
		if p.run.there != nil {
			p.run.there.Add(content, at)
		}
		if label >= 0 {
			p.run.placed.Add(content, j.Stratum.Of(values[label]), splits(at))
		}
		p.run.progress.Add(1)
	})
}

// eachRecord calls f for each record of the dataset that is appended to, with the values of all fields.
func eachRecord(ctx context.Context, c Config, fields int, f func(at int64, values [][]byte)) error {
	path := c.Dest
	if c.appendTo != nil {
		path = c.appendTo.path
	}
	src, err := kinds.Open(ctx, path, source.Options{Kind: c.DatasetFormat()})
	if err != nil {
		return err
	}
	defer src.Close()
	v, values, at := source.NewValues(fields), make([][]byte, fields), int64(0)
	for sample, err := range src.Samples() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = sample.Data.Read(v)
		}
		if err != nil {
			return err
		}
		for i := range values {
			values[i] = v.Get(i)
		}
		f(at, values)
		at++
	}
	return nil
}

// splitsOf returns a function that gives the split of a record, "" without splits.
func splitsOf(splits []store.Split) func(at int64) string {
	return func(at int64) string {
		for _, s := range splits {
			i, _ := slices.BinarySearchFunc(s.Ranges, at, func(r [2]int64, at int64) int {
				if r[1] <= at {
					return -1
				}
				return 1
			})
			if i < len(s.Ranges) && s.Ranges[i][0] <= at {
				return s.Name
			}
		}
		return ""
	}
}
