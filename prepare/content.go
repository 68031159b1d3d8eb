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

// duplicate reports whether a good sample is left out because its content came before: in a record of the dataset that
// is appended to, or in an earlier sample. The log then counts the sample.
func (r *run) duplicate(s *execute.Slot) (bool, error) {
	if r.there != nil {
		if at, ok := r.there.Find(s.Stored); ok {
			return true, r.log.repeat(s.Sample.Name, fmt.Sprintf("its content is in the dataset already: record %d", at))
		}
	}
	if first, ok := r.log.before(s.Digest); ok {
		return true, r.log.repeat(s.Sample.Name, "an earlier sample has the same content"+r.asRecord(first))
	}
	return false, nil
}

// asRecord names the record that has the first sample with a content. New records follow the records of the dataset
// that is appended to. After a shuffle the numbers of records are not known.
func (r *run) asRecord(n int64) string {
	if r.Shuffle.Set || r.task.quiet || n >= samples.Unplaced {
		return ""
	}
	if r.base != nil {
		n += r.base.Records
	}
	return fmt.Sprintf(": record %d", n)
}

// splitOf returns the split of the next record, and "" if there are no splits.
func (r *run) splitOf(j *execute.Job, s *execute.Slot) (string, error) {
	if r.Split == nil {
		return s.Sample.Split, nil
	}
	splitter, class, content := r.log.splitter, j.Stratum.Class(s.Record), s.Digest
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

// knowBase reads the dataset that is appended to, if its records matter: for --dedup their contents, and for --stratify
// their classes and splits, too.
func (r *run) knowBase(ctx context.Context, j *execute.Job) error {
	if r.base == nil || !r.Dedup && !r.Stratify.Wanted {
		return nil
	}
	j.Stored = true
	schema := r.base.Schema()
	if r.Dedup {
		r.there = new(samples.DigestSet)
	}
	label := -1
	live, err := r.base.LiveSplits()
	if err != nil {
		return err
	}
	splits := splitsOf(live)
	if r.Stratify.Wanted {
		r.placed, label = newSplitter(r.Config), schema.Index(j.Stratum.Name)
	}
	r.progress.Begin("reading existing records", r.base.Live(), "records")
	defer r.progress.End()
	return eachRecord(ctx, r.setup, len(schema.Fields), func(at int64, values [][]byte) {
		content := execute.StoredContent(schema, values)
		if r.there != nil {
			r.there.Add(content, at)
		}
		if label >= 0 {
			r.placed.Add(content, j.Stratum.Of(values[label]), splits(at))
		}
		r.progress.Add(1)
	})
}

// eachRecord calls f for each record of the dataset that is appended to, with the values of all fields.
func eachRecord(ctx context.Context, c setup, fields int, f func(at int64, values [][]byte)) error {
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
