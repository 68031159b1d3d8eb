package preprocess

import (
	"context"

	"github.com/penstock/penstock/cmd/internal/preprocess/samples"
	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/source/kinds"
	"github.com/penstock/penstock/store"
)

// duplicate reports whether a good sample is left out: its content is that of a record
// that the samples are appended to, or of a sample before it. Then r.log counts it.
func (r *run) duplicate(s *slot) (bool, error) {
	if r.there != nil && r.there.Has(s.stored) {
		return true, r.log.repeat(s.sample.Name, "its content is in the dataset already")
	}
	if r.log.before(s.digest) {
		return true, r.log.repeat(s.sample.Name, "its content was there before")
	}
	return false, nil
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
	all, schema := new(samples.DigestSet), r.base.Schema()
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
		all.Add(storedContent(schema, list))
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
