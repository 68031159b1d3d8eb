package preprocess

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/cmd/internal/preprocess/samples"
	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/source/kinds"
	"github.com/penstock/penstock/store"
)

// duplicate reports whether a good sample is left out: its content is that of a record
// that the samples are appended to, or of a sample before it. Then r.log counts it.
func (r *run) duplicate(s *slot) (bool, error) {
	if r.there != nil {
		if at, ok := r.there.Find(s.stored); ok {
			return true, r.log.repeat(s.sample.Name, fmt.Sprintf("its content is in the dataset already: record %d", at))
		}
	}
	if first, ok := r.log.before(s.digest); ok {
		return true, r.log.repeat(s.sample.Name, "its content was there before"+r.asRecord(first))
	}
	return false, nil
}

// asRecord says as which record of the dataset the first one of this content is there: of the records of a run, after those
// that were there. A shuffle gives records other numbers.
func (r *run) asRecord(n int64) string {
	if r.config.Shuffle.Set || r.task.quiet || n >= samples.Unplaced {
		return ""
	}
	if r.base != nil {
		n += r.base.Records
	}
	return fmt.Sprintf(": record %d", n)
}

// contents reads the dataset that is appended to and returns what its records hold.
func (r *run) contents(ctx context.Context) (*samples.DigestSet, error) {
	src, err := kinds.Open(ctx, r.config.Dest, source.Options{Kind: r.config.format()})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	r.progress.Begin("reading what is there", r.base.Records, "records")
	defer r.progress.End()
	all, schema, at := new(samples.DigestSet), r.base.Schema(), int64(0)
	v, list := source.NewValues(len(schema.Fields)), make([][]byte, len(schema.Fields))
	for sample, err := range src.Samples() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = sample.Data.Read(v)
		}
		if err != nil {
			return nil, err
		}
		for i := range list {
			list[i] = v.Get(i)
		}
		all.Add(storedContent(schema, list), at)
		at++
		r.progress.Add(1)
	}
	return all, nil
}

// storedContent returns the digest of what a record is known by: its images, or all its
// values where it has none.
func storedContent(s store.Schema, values [][]byte) samples.Digest {
	f := s.Fields
	image := func(i int) bool { return f[i].Content == store.Image || f[i].Layout != "" }
	counts := func(i int) bool { return f[i].Content != store.SourceName }
	return samples.Content(len(f), image, counts, func(i int) []byte { return values[i] })
}
