package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// compiler makes one Report.
type compiler struct {
	report  *Report
	ds      *mmapds.Dataset
	opts    ReportOptions
	rng     *rand.Rand
	gallery *gallery
	census  census
	decoder *imagefile.Decoder
}

// How many samples are shown.
const (
	randomShots     = 24
	classesShown    = 12 // with an album of their own; of more there is one album
	classesTogether = 48
	classShots      = 6
	extremeShots    = 8
	twinsShown      = 8
	rowsShown       = 8
)

func (c *compiler) pictures(ctx context.Context) (err error) {
	if c.gallery, err = newGallery(ctx, c.ds); err != nil || c.gallery == nil || c.ds.Len() == 0 {
		return err
	}
	c.report.Pictures = c.gallery.tone.text
	c.decoder = imagefile.New(imagefile.Options{})
	c.census = census{ds: c.ds}
	if err := c.census.readLabels(ctx); err != nil {
		return err
	}
	if err := c.album(ctx, "Random samples", "", sample(c.rng, c.ds.Len(), min(randomShots, c.ds.Len()))); err != nil {
		return err
	}
	if err := c.classAlbums(ctx); err != nil {
		return err
	}
	return c.extremes(ctx)
}

// classAlbums shows some samples of each class, or one where there are many.
func (c *compiler) classAlbums(ctx context.Context) error {
	if len(c.census.values) < 2 {
		return nil
	}
	groups := make([][]int, len(c.census.values))
	for i, class := range c.census.class {
		groups[class] = append(groups[class], i)
	}
	groups = slices.DeleteFunc(groups, func(records []int) bool { return len(records) == 0 })
	if len(groups) > classesShown {
		return c.oneOfEach(ctx, groups)
	}
	for _, records := range groups {
		some := sample(c.rng, len(records), min(classShots, len(records)))
		title := c.labelText(c.census.values[c.census.class[records[0]]])
		note := cli.Counted(int64(len(records)), "record")
		if err := c.album(ctx, title, note, widen(some, func(k int) int { return records[k] })); err != nil {
			return err
		}
	}
	return nil
}

// oneOfEach shows a sample of as many classes as there is room for.
func (c *compiler) oneOfEach(ctx context.Context, groups [][]int) error {
	note := ""
	chosen := sample(c.rng, len(groups), min(len(groups), classesTogether))
	if len(chosen) < len(groups) {
		note = fmt.Sprintf("%d of %s", len(chosen), classes(len(groups)))
	}
	return c.album(ctx, "One of each class", note, widen(chosen, func(k int) int { return groups[k][c.rng.IntN(len(groups[k]))] }))
}

func (c *compiler) labelText(l Label) string {
	if l.Name != "" {
		return l.Name
	}
	return fmt.Sprintf("%s %d", c.census.labels.Name, l.Value)
}

// extremes shows the darkest, the brightest, and pairs that look alike.
func (c *compiler) extremes(ctx context.Context) error {
	count := c.opts.scans(c.ds)
	c.report.Scanned = "all records"
	if count < c.ds.Len() {
		c.report.Scanned = fmt.Sprintf("%s of %s records, evenly spread", cli.Count(int64(count)), cli.Count(int64(c.ds.Len())))
	}
	all, err := c.gallery.scan(ctx, count, c.opts.Workers, c.opts.progress)
	if err != nil {
		return err
	}
	readable := slices.DeleteFunc(slices.Clone(all), func(g glance) bool { return !g.ok })
	if bad := len(all) - len(readable); bad > 0 {
		c.report.check(false, "%s cannot be decoded, the first is record %d", cli.Counted(int64(bad), "image"), firstBad(all))
	}
	slices.SortStableFunc(readable, func(a, b glance) int { return cmp.Compare(a.mean, b.mean) })
	n := min(extremeShots, len(readable))
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

func firstBad(all []glance) int {
	return all[slices.IndexFunc(all, func(g glance) bool { return !g.ok })].record
}

func recordsOf(list []glance) []int { return widen(list, func(g glance) int { return g.record }) }

func (c *compiler) duplicates(ctx context.Context, pairs []twins) error {
	c.report.check(len(pairs) == 0, "%s of records look alike, by a perceptual hash", pairsText(len(pairs)))
	crossing := 0
	for _, p := range pairs {
		if splitOf(c.splits(), int64(p.a)) != splitOf(c.splits(), int64(p.b)) {
			crossing++
		}
	}
	if len(c.report.Summary.Splits) > 1 && c.opts.Split == "" {
		c.report.check(crossing == 0, "%s of records look alike and are in different splits", pairsText(crossing))
	}
	if len(pairs) == 0 {
		return nil
	}
	var records []int
	for _, p := range pairs[:min(twinsShown, len(pairs))] {
		records = append(records, p.a, p.b)
	}
	return c.album(ctx, "Near-duplicates", pairsText(len(pairs))+", side by side, the most alike first", records)
}

// splits returns the manifest where its numbers of records are those of the dataset.
func (c *compiler) splits() *store.Manifest {
	if c.opts.Split != "" {
		return nil
	}
	return c.ds.Manifest()
}

func pairsText(n int) string {
	if n == 0 {
		return "No pairs"
	}
	return cli.Counted(int64(n), "pair")
}

// album adds a group of samples.
func (c *compiler) album(ctx context.Context, title, note string, records []int) error {
	a := Album{Title: title, Note: note}
	reader := newSlabReader(c.ds, c.gallery.field)
	for _, i := range records {
		s, err := reader.read(ctx, i, i+1)
		if err != nil {
			return err
		}
		img, err := c.gallery.picture(c.decoder, s.record(0))
		if err != nil {
			continue // a check says that there are such
		}
		shot, err := newShot(img)
		if err != nil {
			return err
		}
		shot.Record, shot.Caption = i, c.caption(i)
		shot.Text = fmt.Sprintf("%s: record %d, %s", title, i, shot.Caption)
		a.Shots = append(a.Shots, shot)
	}
	if len(a.Shots) > 0 {
		c.report.Albums = append(c.report.Albums, a)
	}
	return nil
}

// caption names the class of a record, and its split.
func (c *compiler) caption(i int) string {
	text := ""
	if c.census.class != nil {
		text = c.labelText(c.census.values[c.census.class[i]])
	}
	if split := splitOf(c.splits(), int64(i)); split != "" {
		text += " · " + split
	}
	return text
}

// rows shows the values of some records.
func (c *compiler) rows(ctx context.Context) error {
	v := &viewer{ds: c.ds, opts: ShowOptions{Elements: 8}, decoder: imagefile.New(imagefile.Options{})}
	for _, i := range sample(c.rng, c.ds.Len(), min(rowsShown, c.ds.Len())) {
		s, err := v.record(ctx, i)
		if err != nil {
			return err
		}
		c.report.Rows = append(c.report.Rows, s)
	}
	return nil
}
