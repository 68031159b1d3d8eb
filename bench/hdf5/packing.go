package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
)

// packing writes records as compressed HDF5, one a chunk: by this module and by h5py.
type packing struct {
	dir         string
	peer        peer
	schema      store.Schema
	data        []byte
	count, size int              // records, and bytes of one
	sizes       map[string]int64 // of the files, by contender
}

// pack compares writing the records of a shard of a flat dataset at some levels of gzip.
func (b *bench) pack(records, levels string) error {
	p := &packing{dir: b.dir, peer: b.peers[0], sizes: make(map[string]int64)}
	if err := p.load(records); err != nil {
		return err
	}
	fmt.Printf("%s\n%s; penstock deflates by %s, %s\n%d records of %d bytes\n\n", measure.Machine(), p.peer.name,
		encode.Backend, hdf5.Version(), p.count, p.size)
	rows := [][]string{{"gzip", "penstock", "h5py takes, clock", "CPU", "fastest", "file", "penstock, a record"}}
	for level := range strings.SplitSeq(levels, ",") {
		more, err := p.level(level, b.rounds)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// load reads the records.
func (p *packing) load(records string) error {
	d, err := store.OpenFlat(filepath.Dir(records))
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(filepath.Base(records), "-")
	at := d.Schema.Index(name)
	if at < 0 {
		return fmt.Errorf("%s: no field %q", records, name)
	}
	field := d.Schema.Fields[at]
	p.schema = store.Schema{Fields: []store.Field{field}}
	text, err := os.ReadFile(records)
	if err != nil {
		return err
	}
	p.data, p.size = text[layout.HeaderBytes:], field.RecordBytes()
	p.count = len(p.data) / p.size
	return nil
}

// level measures one level.
func (p *packing) level(level string, rounds int) ([][]string, error) {
	results, err := measure.Rounds(rounds, p.count, p.count, []measure.Contender{
		{Name: "h5py", Do: func(from, to int) (measure.Cost, error) {
			a, err := p.peer.Ask(measure.Request{Do: "write", Set: level, From: from, To: to})
			p.sizes["h5py"] = a.Sum
			return a.Cost, err
		}},
		p.ours("1 worker", level, 1), p.ours("2 workers", level, 2),
	})
	if err != nil {
		return nil, err
	}
	measure.Lines(os.Stderr, "Packing/gzip="+level, "record", results)
	var rows [][]string
	for _, r := range results[1:] {
		rows = append(rows, []string{
			level, r.Name, results[0].Over(r, measure.Wall).String(), results[0].Over(r, measure.CPU).String(),
			measure.Digits(results[0].Fastest(measure.Wall) / r.Fastest(measure.Wall)),
			measure.Digits(float64(p.sizes[r.Name]) / float64(p.sizes["h5py"])),
			measure.Digits(1e6*r.Median(measure.CPU)) + " us",
		})
	}
	return rows, nil
}

// ours writes with package store/hdf5.
func (p *packing) ours(name, level string, workers int) measure.Contender {
	path := filepath.Join(p.dir, "penstock.h5")
	c := &hdf5.Compression{Level: int(level[0] - '0'), ChunkRecords: 1, Shuffle: hdf5.ShuffleOff}
	return measure.Contender{Name: name, Do: measure.Timed(func(from, to int) error {
		w, err := hdf5.Create(path, p.schema, hdf5.Options{Overwrite: true, Compress: c, Workers: workers})
		if err != nil {
			return err
		}
		defer w.Close()
		r := store.NewRecord(p.schema)
		for i := from; i < to; i++ {
			copy(r.Values[0], p.data[i*p.size:])
			if err := w.Append(r); err != nil {
				return err
			}
		}
		if _, err := w.Commit(store.Info{}); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			p.sizes[name] = info.Size()
		}
		return err
	})}
}
