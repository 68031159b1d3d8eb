package report

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/cmd/internal/inspect/render"
	"github.com/penstock/penstock/cmd/internal/inspect/show"
	"github.com/penstock/penstock/cmd/internal/inspect/stats"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// builder makes one Report.
type builder struct {
	report   *Report
	ds       *mmapds.Dataset
	opts     Options
	rng      *rand.Rand
	renderer *render.Renderer
	marks    *marks // nil if nothing lies on the pictures
	labels   stats.Classes
	decoder  *imagefile.Decoder
}

// The number of samples that are shown, in each part of the page.
const (
	randomSamples   = 24
	classesShown    = 12 // classes with an album of their own; with more classes, there is one album of all
	classesTogether = 48 // pictures in the album of all classes
	classSamples    = 8
	extremeSamples  = 8
	pairsShown      = 8   // with pictures
	pairsListed     = 200 // with numbers and names
	rowsShown       = 8
)

// pictures adds everything with pictures: random samples, samples by class, and extremes. Without a
// field that can be shown, it adds nothing.
func (c *builder) pictures(ctx context.Context) (err error) {
	if c.renderer, err = render.NewRenderer(ctx, c.ds); err != nil || c.renderer == nil || c.ds.Len() == 0 {
		return err
	}
	c.report.Pictures = c.renderer.Brightness.Text
	c.decoder = imagefile.New(imagefile.Options{})
	if c.marks, err = newMarks(c.ds, c.renderer.Field.Name); err != nil {
		return err
	}
	if c.labels, err = stats.ClassesOf(ctx, c.ds); err != nil {
		return err
	}
	if err := c.album(ctx, "Random samples", "",
		dataset.Sample(c.rng, c.ds.Len(), min(randomSamples, c.ds.Len()))); err != nil {
		return err
	}
	if err := c.classAlbums(ctx); err != nil {
		return err
	}
	err = c.extremes(ctx)
	if c.marks != nil {
		c.report.Legend = c.marks.reader.Legend()
	}
	return err
}

// classAlbums shows some samples of each class, or one sample of each if there are many classes.
func (c *builder) classAlbums(ctx context.Context) error {
	if len(c.labels.Values) < 2 {
		return nil
	}
	groups := make([][]int, len(c.labels.Values))
	for i, class := range c.labels.Class {
		groups[class] = append(groups[class], i)
	}
	groups = slices.DeleteFunc(groups, func(records []int) bool { return len(records) == 0 })
	if len(groups) > classesShown {
		return c.oneOfEach(ctx, groups)
	}
	for _, records := range groups {
		some := dataset.Sample(c.rng, len(records), min(classSamples, len(records)))
		title := c.labels.Text(c.labels.Class[records[0]])
		note := units.Counted(int64(len(records)), "record")
		if err := c.album(ctx, title, note, dataset.Map(some, func(k int) int { return records[k] })); err != nil {
			return err
		}
	}
	return nil
}

// oneOfEach shows one sample of as many classes as there is room for.
func (c *builder) oneOfEach(ctx context.Context, groups [][]int) error {
	note := ""
	chosen := dataset.Sample(c.rng, len(groups), min(len(groups), classesTogether))
	if len(chosen) < len(groups) {
		note = fmt.Sprintf("%d of %s", len(chosen), classes(len(groups)))
	}
	return c.album(ctx, "One of each class", note, dataset.Map(chosen, func(k int) int {
		return groups[k][c.rng.IntN(len(groups[k]))]
	}))
}

// extremes shows the darkest and the brightest pictures, and pairs that look alike. For large
// datasets, a part of the records, evenly spread, is looked at, and the page says so.
func (c *builder) extremes(ctx context.Context) error {
	count := c.opts.scans(c.ds)
	c.report.Scanned = "all records"
	if count < c.ds.Len() {
		c.report.Scanned = fmt.Sprintf("%s of %s records, evenly spread", units.Count(int64(count)),
			units.Count(int64(c.ds.Len())))
	}
	all, err := scan(ctx, c.ds, c.renderer, count, c.opts.Workers, c.opts.progress)
	if err != nil {
		return err
	}
	readable := slices.DeleteFunc(slices.Clone(all), func(g imageHash) bool { return !g.ok })
	if bad := len(all) - len(readable); bad > 0 {
		c.report.fail("%s cannot be decoded, the first is record %d", units.Counted(int64(bad), "image"), firstBad(all))
	}
	slices.SortStableFunc(readable, func(a, b imageHash) int { return cmp.Compare(a.mean, b.mean) })
	n := min(extremeSamples, len(readable))
	if err := c.album(ctx, "Darkest", "", recordsOf(readable[:n])); err != nil {
		return err
	}
	brightest := recordsOf(readable[len(readable)-n:])
	slices.Reverse(brightest)
	if err := c.album(ctx, "Brightest", "", brightest); err != nil {
		return err
	}
	return c.duplicates(ctx, nearDuplicates(all))
}

// firstBad returns the first record that could not be decoded.
func firstBad(all []imageHash) int {
	return all[slices.IndexFunc(all, func(g imageHash) bool { return !g.ok })].record
}

// recordsOf returns the record numbers of hashes.
func recordsOf(list []imageHash) []int {
	return dataset.Map(list, func(g imageHash) int { return g.record })
}

// duplicates reports pairs of records that look alike. A pair in two splits is a check of its own:
// a test set that has copies of training images measures memory and not skill.
func (c *builder) duplicates(ctx context.Context, pairs []pair) error {
	c.report.check(len(pairs) == 0, fmt.Sprintf("%s of records look alike, by a perceptual hash", pairsText(len(pairs))))
	crossing := 0
	for _, p := range pairs {
		found := Pair{Records: [2]int{p.a, p.b}, Distance: p.distance}
		for k, record := range found.Records {
			var err error
			if found.Sources[k], err = c.source(ctx, record); err != nil {
				return err
			}
			found.Splits[k] = dataset.SplitOf(c.splits(), int64(c.ds.Stored(record)))
		}
		if found.Splits[0] != found.Splits[1] {
			crossing++
		}
		c.report.Pairs = append(c.report.Pairs, found)
	}
	if len(c.report.Summary.Splits) > 1 && c.opts.Split == "" {
		c.report.check(crossing == 0, fmt.Sprintf("%s of records look alike and are in different splits",
			pairsText(crossing)))
	}
	if len(pairs) == 0 {
		return nil
	}
	var records []int
	for _, p := range pairs[:min(pairsShown, len(pairs))] {
		records = append(records, p.a, p.b)
	}
	const title = "Near-duplicates"
	if err := c.album(ctx, title, pairsText(len(pairs))+", side by side, the most alike first", records); err != nil {
		return err
	}
	last := &c.report.Albums[len(c.report.Albums)-1]
	for k := range last.Thumbnails { // has every record of the pairs, since all of them could be decoded
		last.Thumbnails[k].ID = fmt.Sprintf("pair-%d", k)
		c.report.Pairs[k/2].Links[k%2] = "#" + last.Thumbnails[k].ID
	}
	return nil
}

// splits returns the manifest whose splits a record number of c.ds can be looked up in; nil if only
// one split is open, where the numbers are others.
func (c *builder) splits() *store.Manifest {
	if c.opts.Split != "" {
		return nil
	}
	return c.ds.Manifest()
}

// pairsText returns a number of pairs in words.
func pairsText(n int) string {
	if n == 0 {
		return "No pairs"
	}
	return units.Counted(int64(n), "pair")
}

// album adds a group of samples. Records that cannot be decoded are left out.
func (c *builder) album(ctx context.Context, title, note string, records []int) error {
	a := Album{Title: title, Note: note}
	reader := dataset.NewBatchReader(c.ds, c.renderer.Field)
	for _, i := range records {
		s, err := reader.Read(ctx, i, i+1)
		if err != nil {
			return err
		}
		img, err := c.renderer.Draw(c.decoder, s.Record(0))
		if err != nil {
			continue // extremes adds a check for these
		}
		if img, err = c.marks.draw(ctx, i, img); err != nil {
			return err
		}
		thumbnail, err := newThumbnail(img)
		if err != nil {
			return err
		}
		if thumbnail.Source, err = c.source(ctx, i); err != nil {
			return err
		}
		thumbnail.Record, thumbnail.Caption = i, c.caption(i)
		thumbnail.Text = strings.TrimRight(fmt.Sprintf("%s: record %d, %s", title, i, thumbnail.Caption), ", ")
		if thumbnail.Source != "" {
			thumbnail.Text += ", " + thumbnail.Source
		}
		a.Thumbnails = append(a.Thumbnails, thumbnail)
	}
	if len(a.Thumbnails) > 0 {
		c.report.Albums = append(c.report.Albums, a)
	}
	return nil
}

// source returns the name of the sample from which record i was built, as valid UTF-8.
func (c *builder) source(ctx context.Context, i int) (string, error) {
	name, err := c.ds.SourceName(ctx, i)
	return strings.ToValidUTF8(name, "\uFFFD"), err
}

// caption returns the class and the split of a record.
func (c *builder) caption(i int) string {
	text := ""
	if c.labels.Class != nil {
		text = c.labels.Text(c.labels.Class[i])
	}
	if split := dataset.SplitOf(c.splits(), int64(c.ds.Stored(i))); split != "" {
		text += " · " + split
	}
	return text
}

// rows adds the values of some random records.
func (c *builder) rows(ctx context.Context) error {
	v := show.NewReader(c.ds, show.Options{Elements: 8})
	for _, i := range dataset.Sample(c.rng, c.ds.Len(), min(rowsShown, c.ds.Len())) {
		s, err := v.Read(ctx, i)
		if err != nil {
			return err
		}
		c.report.Rows = append(c.report.Rows, s)
	}
	return nil
}
