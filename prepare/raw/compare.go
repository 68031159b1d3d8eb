package raw

import (
	"bytes"
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// Compare reads records that a dataset may have: record i of the source would be record places[i] there, and -1 is
// none. It sets those places to -1 whose record has other bytes, or cannot be read. Fields that follow from names are
// not compared, as Renew writes them. The Source must have all records.
func (s *Source) Compare(ctx context.Context, path string, places []int64, workers int) error {
	r, err := s.renewal(path, places)
	if err != nil {
		return err
	}
	var fields []int
	var names []string
	for i, f := range r.job.Schema.Fields {
		if !r.follows(i) {
			fields, names = append(fields, i), append(names, f.Name)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	ds, err := mmapds.Open(path, mmapds.WithFields(names...))
	if err != nil {
		return err
	}
	defer ds.Close()
	var next atomic.Int64
	all, ctx := errgroup.WithContext(ctx)
	for range max(1, workers) {
		all.Go(func() error {
			c := comparison{records: r.records, schema: r.job.Schema, places: places, fields: fields, dataset: ds,
				reader: newReader(r.job)}
			for i := next.Add(1) - 1; i < int64(len(places)); i = next.Add(1) - 1 {
				if places[i] < 0 {
					continue
				}
				if err := c.compare(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// comparison compares records of a source with those of a dataset, for one goroutine.
type comparison struct {
	records *records
	schema  store.Schema
	places  []int64
	fields  []int
	dataset *mmapds.Dataset
	reader  *reader
	has     []byte
	offsets [2]int64
}

// compare sets the place of a record to -1 if it has other bytes.
func (c *comparison) compare(ctx context.Context, record int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	sample, err := c.records.at(record)
	if err != nil {
		return err
	}
	c.reader.slot.Sample = sample
	if err := c.reader.worker.Make(&c.reader.slot); err != nil {
		c.places[record] = -1 // the one who appends it reports what is wrong
		return nil
	}
	for _, field := range c.fields {
		if err := c.load(ctx, field, int(c.places[record])); err != nil {
			return err
		}
		if !bytes.Equal(c.has, c.reader.slot.Record.Values[field]) {
			c.places[record] = -1
			return nil
		}
	}
	return nil
}

// load reads the value that the dataset has.
func (c *comparison) load(ctx context.Context, field, place int) (err error) {
	f := c.schema.Fields[field]
	if f.Ragged {
		c.has, err = c.dataset.GatherRagged(ctx, f.Name, []int{place}, c.offsets[:], c.has)
		return err
	}
	if cap(c.has) < f.RecordBytes() {
		c.has = make([]byte, f.RecordBytes())
	}
	c.has = c.has[:f.RecordBytes()]
	return c.dataset.Gather(ctx, f.Name, []int{place}, c.has)
}
