package preprocess

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/source/kinds"
	"github.com/penstock/penstock/store"
)

// duplicate reports whether a good sample is left out: its content is that of a record
// that the samples are appended to, or of a sample before it. Then r.log counts it.
func (r *run) duplicate(s *slot) (bool, error) {
	if r.there != nil && r.there.has(s.stored) {
		return true, r.log.repeat(s.sample.Name, "its content is in the dataset already")
	}
	if r.log.before(s.digest) {
		return true, r.log.repeat(s.sample.Name, "its content was there before")
	}
	return false, nil
}

// contents reads the dataset that is appended to and returns what its records hold.
func (r *run) contents(ctx context.Context) (*digestSet, error) {
	src, err := kinds.Open(ctx, r.config.Dest, source.Options{Kind: r.config.format()})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	r.progress.Begin("reading what is there", r.base.Records, "records")
	defer r.progress.End()
	all, schema := new(digestSet), r.base.Schema()
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
		all.add(storedContent(schema, list))
		r.progress.Add(1)
	}
	return all, nil
}

// storedContent returns the digest of what a record is known by: its images, or all its
// values where it has none.
func storedContent(s store.Schema, values [][]byte) (d digest) {
	image := func(f store.Field) bool { return f.Content == store.Image || f.Layout != "" }
	images, h := slices.ContainsFunc(s.Fields, image), sha256.New()
	for i, f := range s.Fields {
		if image(f) || !images && f.Content != store.SourceName {
			var size [8]byte
			binary.LittleEndian.PutUint64(size[:], uint64(len(values[i])))
			h.Write(size[:])
			h.Write(values[i])
		}
	}
	copy(d[:], h.Sum(nil))
	return d
}
