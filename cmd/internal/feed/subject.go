package feed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/cmd/internal/feed/external"
	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/transforms"
)

// dataset is an open dataset, mirror, view or source of raw samples, with the values that a
// session needs to know about it.
type dataset struct {
	src    loader.Source
	fields []store.Field
	guard  func(f func() error) error
	close  func() error
}

// openDataset opens one of count datasets. Raw samples may become pixels or files in the cache
// while they are loaded. With several sources, Auto stores no pixels, because their records must be
// alike.
func (s *subject) openDataset(ctx context.Context, cache *datasetarg.Cache, path string, o *Options, count int) (
	*dataset, error) {
	of := datasetarg.Options{Fields: o.Fields, Split: o.Split, Shares: o.Splits, Prepare: o.Prepare,
		Tolerant: errorPolicies[o.OnError] != loader.Fail,
		Head: func(field string) (*transforms.Pipeline, error) {
			if count > 1 && o.Prepare == rawcache.Auto {
				return nil, errors.New("several sources are loaded together, and their records must be alike")
			}
			return o.head(path, field)
		},
		Chosen: func(c *rawcache.Choice) {
			if s.choices = append(s.choices, c); c.Stored == rawcache.Pixels {
				o.tails[c.Field].used = true
			}
		}}
	if o.Verify != 0 {
		of.Verify = o.verify()
	}
	ds, err := cache.Any(ctx, path, of)
	if err != nil {
		return nil, err
	}
	return &dataset{ds.Source, ds.Fields, ds.Guard, ds.Close}, nil
}

// subject is the data that a session serves: the records of its datasets, or rows packed from them,
// their order, and the transforms of their fields.
type subject struct {
	datasets []*dataset
	src      loader.Source
	packed   *combine.Packed // nil if records are not packed
	options  loader.Options
	fields   []served
	pool     *external.Pool // nil if the client has no functions
	stats    []functionStats
	choices  []*rawcache.Choice // what the cache stores of raw samples
}

// served is a field of batches as the client sees it.
type served struct {
	store.Field
	source string // its name in the loader's batches
	finish *finish
	padded bool // batches differ in shape
}

// newSubject opens the datasets and resolves everything that the client asks for.
func newSubject(ctx context.Context, cache *datasetarg.Cache, paths []string, o *Options, numbers *os.File,
	pool *external.Pool) (*subject, error) {
	s := &subject{pool: pool}
	if err := s.open(ctx, cache, paths, o, arrays{numbers}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open does the work of newSubject. The order of steps: datasets, filters, packing, sampler,
// transforms; each works on the result of the step before.
func (s *subject) open(ctx context.Context, cache *datasetarg.Cache, paths []string, o *Options, numbers arrays) error {
	for _, path := range paths {
		ds, err := s.openDataset(ctx, cache, path, o, len(paths))
		if err != nil {
			return err
		}
		s.datasets = append(s.datasets, ds)
	}
	if o.Prepare == rawcache.Pixels && len(s.choices) == 0 {
		return fmt.Errorf("feed: options: prepare is \"pixels\", which is for raw samples, and %s is a dataset; leave "+
			"prepare out", remote.Redact(paths[0]))
	}
	s.src = s.datasets[0].src
	fields := s.datasets[0].fields
	var err error
	if len(s.datasets) > 1 {
		if s.src, fields, err = concat(paths, s.datasets); err != nil {
			return err
		}
	}
	kept, err := o.keep(ctx, s.src)
	if err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	ranks := max(1, o.WorldSize)
	of := sampled{src: s.src, global: o.BatchSize * ranks, ranks: ranks, kept: kept, arrays: numbers}
	if o.Pack != nil {
		if s.packed, fields, err = o.Pack.of(ctx, of, o.Sampler != nil && o.Sampler.Kind == "mix"); err != nil {
			return fmt.Errorf("feed: options: %w", err)
		}
		s.src, of.src, of.kept = s.packed, s.packed, nil
	}
	s.options = o.loader()
	if s.options.Sampler, err = of.order(ctx, o.Sampler); err != nil {
		return fmt.Errorf("feed: options: %w", err)
	}
	if n, none := s.epoch(o, of.global); o.DropLast && n > 0 && none {
		return fmt.Errorf("feed: options: drop_last leaves no batch: an epoch has %d records, and a batch of all "+
			"ranks has %d", n, of.global)
	}
	return s.make(ctx, o, fields)
}

// epoch returns the number of records in an epoch, and whether no batch of it is full. The number
// is 0 if the order does not fit the source, which the loader reports.
func (s *subject) epoch(o *Options, global int) (records int, none bool) {
	order := s.options.Sampler
	if order == nil {
		return s.src.Len(), s.src.Len() < global
	}
	if v, ok := order.(interface{ Validate(n int) error }); ok && v.Validate(s.src.Len()) != nil {
		return 0, false
	}
	seq := order.Epoch(s.src.Len(), o.Seed, 0)
	if batches := sampler.BatchesOf(seq, true); batches != nil {
		return seq.Len(), batches.Len() == 0
	}
	return seq.Len(), seq.Len() < global
}

// make resolves the transforms of the fields and the batch transforms, and lists the fields of
// batches.
func (s *subject) make(ctx context.Context, o *Options, fields []store.Field) error {
	fs := &functions{pool: s.pool, batch: o.BatchSize, sample: s.sampler(ctx, o), name: func(record int) string {
		if named, ok := s.src.(loader.NamedSource); ok {
			if name, err := named.SourceName(ctx, record); err == nil && name != "" {
				return name
			}
		}
		return fmt.Sprintf("record %d", record)
	}}
	becomes, err := o.made(fields, fs)
	if err != nil {
		return fmt.Errorf("feed: options: %w", err)
	}
	s.options.Contents = o.Contents // with the layouts that the transforms need
	if fs.rows != nil {
		return fs.rows
	}
	s.stats = fs.stats
	mix, err := o.mixing(becomes)
	if err != nil {
		return fmt.Errorf("feed: options: %w", err)
	}
	s.options.Transforms = make(map[string]loader.Transform)
	for i, m := range becomes {
		f := served{m.field, m.field.Name, m.finish, m.padded}
		if m.transform != nil {
			s.options.Transforms[m.field.Name] = m.transform
		}
		if mix != nil && i == mix.labels {
			f = served{mix.labelField(m.field), mix.result, nil, false}
		}
		s.fields = append(s.fields, f)
	}
	for _, m := range becomes {
		if m.sizes != nil {
			s.fields = append(s.fields, served{*m.sizes, m.sizes.Name, nil, false})
		}
	}
	if mix != nil {
		s.options.Collate = mix.collate(becomes)
	}
	return nil
}

// guard calls f, which reads memory of the datasets, and returns faults in that memory as errors.
// The guards are nested, since each knows the memory of its dataset only.
func (s *subject) guard(f func() error) error {
	for _, ds := range s.datasets {
		inner := f
		f = func() error { return ds.guard(inner) }
	}
	return f()
}

// ragged reports whether batches have fields of variable length or shape, whose memory cannot be
// allocated before.
func (s *subject) ragged() bool {
	for _, f := range s.fields {
		if f.Ragged || f.padded {
			return true
		}
	}
	return false
}

// Close closes the datasets.
func (s *subject) Close() error {
	var errs []error
	for _, ds := range s.datasets {
		errs = append(errs, ds.close())
	}
	return errors.Join(errs...)
}

// prepared says what the cache stores of raw samples, as a continuation of a sentence.
func (s *subject) prepared() string {
	var text strings.Builder
	for _, c := range s.choices {
		stored := "files"
		if c.Stored == rawcache.Pixels {
			stored = "pixels"
		}
		fmt.Fprintf(&text, "; the cache of %s stores %s: %s", c.Source, stored, c.Why)
	}
	return text.String()
}

// mostSamples is the number of records by which functions show the shape of their results.
const mostSamples = 16

// sampler returns the function that chooses the records with which functions are called to find out
// what they return: the first records of the first epoch, so that the same exception comes as in
// training. If on_error skips bad records, later records are tried.
func (s *subject) sampler(ctx context.Context, o *Options) func(f store.Field,
	try func(src []byte, r loader.Record) (enough bool, err error)) error {
	return func(f store.Field, try func(src []byte, r loader.Record) (enough bool, err error)) error {
		order := s.options.Sampler
		var at []int
		if order == nil {
			for i := range min(mostSamples, s.src.Len()) {
				at = append(at, i)
			}
		} else {
			if err := sampler.Validate(order, s.src.Len()); err != nil {
				return err
			}
			seq := order.Epoch(s.src.Len(), o.Seed, 0)
			at = make([]int, min(mostSamples, seq.Len()))
			seq.Fill(0, at)
		}
		if len(at) == 0 {
			return errors.New("there is no record by which to find what a function makes; give output= to " +
				"penstock.transforms.Function")
		}
		var first error
		for position, i := range at {
			enough := false
			err := s.guard(func() error {
				src, err := s.stored(ctx, f, i)
				if err != nil {
					return err
				}
				enough, err = try(src, loader.Record{Index: i, Position: position, Seed: o.Seed})
				return err
			})
			if enough {
				return err
			}
			if err == nil {
				continue
			}
			if first == nil {
				first = fmt.Errorf("record %d: %w", i, err)
			}
			if o.OnError == "" || o.OnError == "fail" {
				break
			}
		}
		return first
	}
}

// stored returns a copy of a stored record.
func (s *subject) stored(ctx context.Context, f store.Field, record int) ([]byte, error) {
	if err := s.src.Retain(); err != nil {
		return nil, err
	}
	defer s.src.Release()
	if !f.Ragged {
		out := make([]byte, f.RecordBytes())
		return out, s.src.Gather(ctx, f.Name, []int{record}, out)
	}
	rows, ok := s.src.(loader.RaggedSource)
	if !ok {
		return nil, errors.New("records have variable length")
	}
	return rows.GatherRagged(ctx, f.Name, []int{record}, make([]int64, 2), nil)
}
