// Command packing measures writing compressed HDF5 files: package store/hdf5 with one worker and
// with two, and h5py, with the same records, level and chunks in one run.
//
//	go run ./packing -records DATASET/images-00000.npy [-rounds 5] [-levels 1,4,6] [-shuffle]
//
// It needs a Python with h5py: python3, or the one named by PYTHON. Records are in memory; files go
// to a temporary folder, or to -dir. It prints the ratio of h5py's time, like command hdf5, and the
// size of the files next to h5py's: deflaters make different streams at the same level. -tags
// libdeflate measures that back end.
package main

import (
	_ "embed"
	"flag"
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

//go:embed peer.py
var script []byte

func main() {
	b := bench{}
	flag.StringVar(&b.records, "records", "", "records as penstock's .npy file")
	flag.StringVar(&b.dir, "dir", "", "folder for the files; default: a temporary one")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of every level")
	flag.BoolVar(&b.shuffle, "shuffle", false, "shuffle, too")
	levels := flag.String("levels", "1,4,6", "levels of gzip")
	flag.Parse()
	if err := b.run(strings.Split(*levels, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "packing:", err)
		os.Exit(1)
	}
}

// bench is one run of the command.
type bench struct {
	records, dir string
	rounds       int
	shuffle      bool
	schema       store.Schema
	data         []byte
	count, size  int // records, and bytes of one
	peer         *measure.Child
	sizes        map[string]int64 // of the files, by contender
}

func (b *bench) run(levels []string) error {
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "bench-packing-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		b.dir = dir
	}
	if err := b.load(); err != nil {
		return err
	}
	about, err := b.start()
	if err != nil {
		return err
	}
	defer b.peer.Close()
	fmt.Printf("%s\n%s; penstock deflates by %s, %s\n%d records of %d bytes\n\n", measure.Machine(), about, encode.Backend,
		hdf5.Version(), b.count, b.size)
	rows := [][]string{{"gzip", "penstock", "h5py takes, clock", "CPU", "fastest", "file", "penstock, a record"}}
	for _, level := range levels {
		more, err := b.level(level)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// load reads the records of a shard of a flat dataset.
func (b *bench) load() error {
	d, err := store.OpenFlat(filepath.Dir(b.records))
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(filepath.Base(b.records), "-")
	at := d.Schema.Index(name)
	if at < 0 {
		return fmt.Errorf("%s: no field %q", b.records, name)
	}
	field := d.Schema.Fields[at]
	b.schema = store.Schema{Fields: []store.Field{field}}
	text, err := os.ReadFile(b.records)
	if err != nil {
		return err
	}
	b.data, b.size = text[layout.HeaderBytes:], field.RecordBytes()
	b.count = len(b.data) / b.size
	return nil
}

// start starts h5py, and returns what it is.
func (b *bench) start() (about string, err error) {
	name := filepath.Join(b.dir, "peer.py")
	if err := os.WriteFile(name, script, 0o600); err != nil {
		return "", err
	}
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	var a measure.Answer
	b.peer, a, err = measure.StartPeers(python, b.dir, filepath.Base(name), b.dir, b.records)
	return a.Text, err
}

// level measures one level.
func (b *bench) level(level string) ([][]string, error) {
	kind := level
	if b.shuffle {
		kind += " shuffle"
	}
	b.sizes = make(map[string]int64)
	list := []measure.Contender{
		{Name: "h5py", Do: func(from, to int) (measure.Cost, error) {
			a, err := b.peer.Ask(measure.Request{Do: "gzip", Set: kind, From: from, To: to})
			b.sizes["h5py"] = a.Sum
			return a.Cost, err
		}},
		b.ours("1 worker", level, 1), b.ours("2 workers", level, 2),
	}
	results, err := measure.Rounds(b.rounds, b.count, b.count, list)
	if err != nil {
		return nil, err
	}
	measure.Lines(os.Stderr, "Packing/gzip="+strings.ReplaceAll(kind, " ", "-"), "record", results)
	var rows [][]string
	for _, r := range results[1:] {
		rows = append(rows, []string{
			kind, r.Name, results[0].Over(r, measure.Wall).String(), results[0].Over(r, measure.CPU).String(),
			measure.Digits(results[0].Fastest(measure.Wall) / r.Fastest(measure.Wall)),
			measure.Digits(float64(b.sizes[r.Name]) / float64(b.sizes["h5py"])), measure.Digits(1e6*r.Median(measure.CPU)) +
				" us",
		})
	}
	return rows, nil
}

// ours writes with package store/hdf5.
func (b *bench) ours(name, level string, workers int) measure.Contender {
	path := filepath.Join(b.dir, "penstock.h5")
	c := &hdf5.Compression{Level: int(level[0] - '0'), ChunkRecords: 1, Shuffle: hdf5.ShuffleOff}
	if b.shuffle {
		c.Shuffle = hdf5.ShuffleOn
	}
	return measure.Contender{Name: name, Do: measure.Timed(func(from, to int) error {
		w, err := hdf5.Create(path, b.schema, hdf5.Options{Overwrite: true, Compress: c, Workers: workers})
		if err != nil {
			return err
		}
		defer w.Close()
		r := store.NewRecord(b.schema)
		for i := from; i < to; i++ {
			copy(r.Values[0], b.data[i*b.size:])
			if err := w.Append(r); err != nil {
				return err
			}
		}
		if _, err := w.Commit(store.Info{}); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			b.sizes[name] = info.Size()
		}
		return err
	})}
}
