package loadbench

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/mirror"
)

// openRemote measures a first epoch over the network, and then uses the fetched copy as the dataset
// for all rows: a table whose rows fetched different things could not be compared.
func (b *bench) openRemote() (*subject, error) {
	url := b.o.Path
	began := time.Now()
	ds, err := b.o.Cache.Open(b.ctx, url, b.o.Fields, b.o.Split)
	if datasetarg.MayBeRaw(err) {
		return openSubject(b.o) // raw samples are read where they are
	}
	if err != nil {
		return nil, err
	}
	if err := ds.Fits(); err != nil { // better now than after an epoch over the network
		return nil, errors.Join(err, ds.Close())
	}
	if err := b.fetchAll(ds, began); err != nil {
		return nil, errors.Join(err, ds.Close())
	}
	b.o.Path = ds.Path()
	s, err := openSubject(b.o)
	if err != nil {
		return nil, errors.Join(err, ds.Close())
	}
	s.info.Name, s.info.Remote = ds.Name(), b.remote
	s.closers = append(s.closers, ds.Close)
	return s, nil
}

// fetchAll runs an epoch in shuffled order, without work, measures the traffic, and then fetches
// the remaining records.
func (b *bench) fetchAll(ds *mirror.Dataset, began time.Time) error {
	ld, err := loader.New(ds, loader.Options{BatchSize: min(b.o.Batch, ds.Len()), Workers: b.o.Workers, Seed: b.o.Seed,
		Sampler: sampler.Shuffle{}})
	if err != nil {
		return err
	}
	defer ld.Close()
	b.progress.Begin("fetching", int64(ds.Len()), "records")
	defer b.progress.End()
	first := time.Duration(0)
	for batch, err := range ld.Epoch(b.ctx, 0) {
		if err != nil {
			return err
		}
		if first == 0 {
			first = time.Since(began)
		}
		b.progress.Add(int64(batch.Len()))
	}
	took := time.Since(began)
	st := ds.Stats()
	b.remote = fmt.Sprintf("the first, shuffled epoch over the network: %s in %s, %s; the first batch after %s; %d "+
		"requests, %d of them retries; the link's peak: %s/s",
		units.Bytes(st.Fetched), units.Duration(took), units.Rate(st.Fetched, took), units.Duration(first), st.Requests,
		st.Retries, units.Bytes(int64(st.LinkRate)))
	return ds.Fill(b.ctx)
}

// isRemote reports whether the dataset has to be fetched.
func (b *bench) isRemote() bool { return remote.IsURL(b.o.Path) }
