package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/stats"
	"github.com/penstock/penstock/cmd/internal/inspect/verify"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
)

// pass adds a check that found nothing wrong.
func (r *Report) pass(format string, args ...any) {
	r.Checks = append(r.Checks, Check{Good: true, Text: fmt.Sprintf(format, args...)})
}

// fail adds a check that found something wrong.
func (r *Report) fail(format string, args ...any) {
	r.Checks = append(r.Checks, Check{Text: fmt.Sprintf(format, args...)})
}

// check adds a check.
func (r *Report) check(good bool, text string) {
	r.Checks = append(r.Checks, Check{Good: good, Text: text})
}

// verify compares all records with their checksums, if the dataset has checksums.
func (c *builder) verify(ctx context.Context) error {
	if !c.report.Summary.Penstock {
		c.report.pass("There are no checksums to compare the records with: penstock did not make this file")
		return nil
	}
	v, err := verify.Dataset(ctx, c.report.Summary.Path, verify.Options{Workers: c.opts.Workers})
	if err != nil {
		return err
	}
	if v.Whole {
		c.report.pass("Every record is as it was written: %s match", units.Counted(v.Checksums, "checksum"))
		return nil
	}
	c.report.fail("The dataset is corrupt in %s; the first: %s", units.Counted(int64(len(v.Corruptions)), "place"),
		v.Corruptions[0])
	return nil
}

// checkFigures searches the statistics for properties that spoil a training: NaN, constant
// fields, missing and unbalanced classes, skipped samples.
func (r *Report) checkFigures() {
	for _, f := range r.Stats.Fields {
		if f.Agrees != nil {
			r.check(*f.Agrees, fmt.Sprintf("%s: the statistics of the manifest %s the statistics of the values", f.Name,
				choose(*f.Agrees, "are", "are not")))
		}
		if f.Moments != nil && f.DType.IsFloat() {
			r.check(f.Moments.NonFinite == 0, fmt.Sprintf("%s: %s not finite", f.Name, countedAre(f.Moments.NonFinite, "value")))
		}
		if f.Moments != nil && len(f.Labels) == 0 && r.Stats.Records > 1 && f.Moments.Min == f.Moments.Max {
			r.fail("%s: all values are %s", f.Name, cli.Number(f.Moments.Min))
		}
		r.checkLabels(f)
	}
	if n := len(r.Summary.Skipped); n > 0 {
		r.fail("Skipped when the dataset was made: %s, see below", units.Counted(int64(n), "sample"))
	}
}

// checkLabels checks the labels of a field: classes without records or without names, and a largest
// class with more than ten times the records of the smallest.
func (r *Report) checkLabels(f stats.FieldStats) {
	if len(f.Labels) == 0 {
		return
	}
	empty, unnamed, named := 0, 0, false
	for _, l := range f.Labels {
		named = named || l.Name != ""
		if l.Records == 0 {
			empty++
		}
	}
	for _, l := range f.Labels {
		if named && l.Name == "" {
			unnamed++
		}
	}
	r.check(empty == 0, fmt.Sprintf("%s: %s without records", f.Name, classes(empty)))
	if unnamed > 0 {
		r.fail("%s: %s have no name", f.Name, classes(unnamed))
	}
	low := slices.MinFunc(f.Labels, func(a, b stats.Label) int { return cmp.Compare(a.Records, b.Records) }).Records
	high := slices.MaxFunc(f.Labels, func(a, b stats.Label) int { return cmp.Compare(a.Records, b.Records) }).Records
	switch {
	case low == 0 || len(f.Labels) < 2:
	case low == high:
		r.pass("%s: every class has %s", f.Name, units.Counted(low, "record"))
	default:
		r.check(high <= 10*low, fmt.Sprintf("%s: the largest class has %.3g times the records of the smallest", f.Name,
			float64(high)/float64(low)))
	}
}

// classes returns a number of classes in words.
func classes(n int) string {
	switch n {
	case 0:
		return "no classes"
	case 1:
		return "1 class"
	}
	return units.Count(int64(n)) + " classes"
}

// countedAre returns a number of things with the verb that agrees with it.
func countedAre(n int64, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s are"
	case 1:
		return "1 " + noun + " is"
	}
	return units.Counted(n, noun) + " are"
}

// choose returns yes or no, by the condition.
func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// reasonsOf counts the reasons for which samples were skipped, the most frequent first. The name of
// the sample at the start of a reason is removed, so that equal reasons are counted together.
func reasonsOf(skipped []store.Skipped) (out []Reason) {
	at := make(map[string]int)
	for _, s := range skipped {
		text := strings.TrimPrefix(strings.TrimPrefix(s.Reason, s.Sample), ": ")
		i, ok := at[text]
		if !ok {
			i = len(out)
			at[text] = i
			out = append(out, Reason{Text: text, Example: s.Sample})
		}
		out[i].Count++
	}
	slices.SortStableFunc(out, func(a, b Reason) int { return cmp.Compare(b.Count, a.Count) })
	return out
}
