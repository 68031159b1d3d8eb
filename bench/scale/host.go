package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// stages are the costs of one core that were measured here, in seconds.
type stages struct {
	summary float64 // of a record: its checksum and statistics
	append  float64 // of a record whose statistics are known: the work of one goroutine of preprocess
	gather  float64 // of a record, out of memory
	serial  float64 // of a batch: order, slots and the scheduler's lock, without any work
}

// host measures what one goroutine does of preprocess and of a loader, and prints the number of cores at which that
// goroutine is the limit.
func host(s scenario) error {
	rows := [][]string{{"a host that", "a core's work", "in order, by one goroutine", "saturates at", "a second"}}
	for _, bytes := range []int{4096, 150_528} {
		c, err := measureStages(bytes, s.batch)
		if err != nil {
			return err
		}
		name, batch := size(float64(bytes)), float64(s.batch)
		if bytes == 150_528 {
			rows = append(rows,
				saturation("decodes photos and stores records of "+name, s.photoCost, c.append, "records"),
				saturation(fmt.Sprintf("decodes batches of %d photos", s.batch), batch*s.photoCost, c.serial, "batches"))
		}
		rows = append(rows,
			saturation("stores records of "+name+" that exist already", c.summary, c.append, "records"),
			saturation(fmt.Sprintf("gathers batches of %d records of %s", s.batch, name), batch*c.gather, c.serial, "batches"))
	}
	table("Cores that one process can use before its order does (measured costs, memory without limits)", rows)
	return nil
}

// saturation is a row: work of any core, then a serial part.
func saturation(name string, work, serial float64, unit string) []string {
	return []string{name, micros(work), micros(serial), fmt.Sprintf("%.0f cores", (work+serial)/serial),
		scaled(1/serial, unit)}
}

func micros(seconds float64) string { return fmt.Sprintf("%.3g us", 1e6*seconds) }

// measureStages measures with records of zeros, in files that stay in the page cache.
func measureStages(bytes, batch int) (c stages, err error) {
	dir, err := os.MkdirTemp("", "penstock-scale-")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	path, n := filepath.Join(dir, "ds"), min(100_000, (256<<20)/bytes)
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, bytes)}}
	w, err := flat.Create(path, schema, flat.Options{})
	if err != nil {
		return c, err
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for range n {
		began := time.Now()
		r.Summarize(schema)
		c.summary += time.Since(began).Seconds() / float64(n)
		began = time.Now()
		if err := w.Append(r); err != nil {
			return c, err
		}
		c.append += time.Since(began).Seconds() / float64(n)
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		return c, err
	}
	ds, err := mmapds.Open(path)
	if err != nil {
		return c, err
	}
	defer ds.Close()
	dst, order := make([]byte, batch*bytes), make([]int, batch)
	seq := sampler.Shuffle{}.Epoch(n, 1, 0)
	for range 2 { // the first epoch maps the pages
		began := time.Now()
		for pos := 0; pos+batch <= n; pos += batch {
			seq.Fill(pos, order)
			if err := ds.Gather(context.Background(), "x", order, dst); err != nil {
				return c, err
			}
		}
		c.gather = time.Since(began).Seconds() / float64(n/batch*batch)
	}
	c.serial, err = serial(batch)
	return c, err
}

// nothing is a Source whose records take no work.
type nothing struct{ loader.Source }

func (nothing) Len() int             { return 1 << 24 }
func (nothing) Specs() []tensor.Spec { return []tensor.Spec{{Name: "x", DType: tensor.Uint8}} }
func (nothing) Slice(string, int, int) (tensor.View, error) {
	return tensor.View{}, fmt.Errorf("scale: nothing has no views")
}
func (nothing) Gather(context.Context, string, []int, []byte) error { return nil }
func (nothing) Prefetch(string, int, int) error                     { return nil }
func (nothing) Retain() error                                       { return nil }
func (nothing) Release()                                            {}

// serial returns the seconds of a batch of a loader whose workers have nothing to do.
func serial(batch int) (float64, error) {
	ld, err := loader.New(nothing{}, loader.Options{BatchSize: batch, Sampler: sampler.Shuffle{}, Workers: 2, Seed: 1})
	if err != nil {
		return 0, err
	}
	defer ld.Close()
	const batches = 100_000
	n, began := 0, time.Now()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			return 0, err
		}
		_ = b
		if n++; n == batches {
			break
		}
	}
	return time.Since(began).Seconds() / float64(n), nil
}
