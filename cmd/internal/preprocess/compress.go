package preprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/preprocess/part"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/zarr"
)

// Compress says how the arrays of an HDF5 file or Zarr are compressed; the zero value, not at all.
type Compress struct {
	On           bool // by gzip, as in HDF5
	Zstd         bool // by zstd, as in Zarr
	Level        int  // 1 to 9, of zstd to 22; 0 takes what a sample of the records asks for, of zstd 3
	ChunkRecords int64
	ChunkBytes   int64
	Shuffle      string // "on", "off", or "" for what a sample asks for
}

// compressFlags are its flags as text.
type compressFlags struct{ compress, chunkRecords, chunkBytes, shuffle string }

// compressNames are the flags' names, as a recipe has them.
var compressNames = []string{"compress", "chunk-records", "chunk-bytes", "shuffle-bytes"}

func (f *compressFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.compress, "compress", "none", "compress the records: `METHOD` is none; of HDF5 gzip or gzip:LEVEL, 1 (fast) to 9 (small); of Zarr zstd or zstd:LEVEL, 1 to 22")
	fs.StringVar(&f.chunkRecords, "chunk-records", "", "compress `N` records per chunk (default 1, or 64 KiB of small records)")
	fs.StringVar(&f.chunkBytes, "chunk-bytes", "", "compress about `BYTES` of records per chunk")
	fs.StringVar(&f.shuffle, "shuffle-bytes", "auto", "HDF5 shuffle filter before gzip: `WHEN` is auto, on or off")
}

// parse reads the texts.
func (f *compressFlags) parse(p *problems) (c Compress) {
	method, level, hasLevel := strings.Cut(f.compress, ":")
	var err error
	if most := map[string]int{"gzip": 9, "zstd": 22}[method]; most > 0 {
		c.On, c.Zstd = method == "gzip", method == "zstd"
		if hasLevel {
			if c.Level, err = strconv.Atoi(level); err != nil || c.Level < 1 || c.Level > most {
				err = fmt.Errorf("the level must be from 1 to %d", most)
			}
		}
	} else if f.compress != "none" {
		err = errors.New("must be none, gzip, gzip:1 to gzip:9, zstd, or zstd:1 to zstd:22")
	}
	p.add("compress", f.compress, err)
	c.ChunkRecords = f.positive(p, "chunk-records", f.chunkRecords, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
	c.ChunkBytes = f.positive(p, "chunk-bytes", f.chunkBytes, cli.ParseBytes)
	switch f.shuffle {
	case "on", "off":
		c.Shuffle = f.shuffle
	case "auto":
	default:
		p.add("shuffle-bytes", f.shuffle, errors.New("must be one of auto, on, off"))
	}
	return c
}

func (f *compressFlags) positive(p *problems, name, text string, parse func(string) (int64, error)) int64 {
	if text == "" {
		return 0
	}
	n, err := parse(text)
	if err != nil || n < 1 {
		p.add(name, text, errors.New("must be a whole number above 0"))
		return 0
	}
	return n
}

// forget drops what a recipe says that cannot hold: another format has another method or none, and an
// append stores records as those before.
func (f *compressFlags) forget(fs *pflag.FlagSet, c *Config) {
	method, _, _ := strings.Cut(f.compress, ":")
	if compressors[c.format()] == method && !c.Append || slices.ContainsFunc(compressNames, fs.Changed) {
		return
	}
	*f = compressFlags{compress: "none", shuffle: "auto"}
}

// compressors are the methods of the formats.
var compressors = map[string]string{part.HDF5: "gzip", part.Zarr: "zstd"}

// method returns the name of the method, "" for none.
func (c Compress) method() string { return choose(c.On, "gzip", choose(c.Zstd, "zstd", "")) }

// problems lists what is wrong in terms of the flags.
func (c Compress) problems(all Config) (list []string) {
	switch asked := c != (Compress{}); {
	case asked && all.format() == part.Flat:
		list = append(list, "--compress: is for HDF5 files and Zarr, such as DEST.h5 or DEST.zarr; a flat dataset is mapped as it is")
	case asked && all.Append:
		list = append(list, "--append and --compress: records are stored as those are that are there; leave --compress, --chunk-records, --chunk-bytes and --shuffle-bytes out")
	case c.method() != "" && c.method() != compressors[all.format()]:
		list = append(list, fmt.Sprintf("--compress %s: %s takes %s", c.method(), choose(c.Zstd, "an HDF5 file", "Zarr"), compressors[all.format()]))
	case c.Zstd && c.Shuffle != "":
		list = append(list, "--shuffle-bytes: is a filter of HDF5 files")
	case asked && c.method() == "":
		list = append(list, "--chunk-records, --chunk-bytes, --shuffle-bytes: say how to --compress, which is not given")
	}
	if c.ChunkRecords > 0 && c.ChunkBytes > 0 {
		list = append(list, "--chunk-records and --chunk-bytes: choose one")
	}
	return list
}

// options returns what a recipe says; "" says nothing.
func (c Compress) options() map[string]string {
	number := func(n int64) string { return choose(n > 0, strconv.FormatInt(n, 10), "") }
	level := choose(c.Level > 0, ":"+strconv.Itoa(c.Level), "")
	return map[string]string{
		"compress": choose(c.method() != "", c.method()+level, ""), "shuffle-bytes": c.Shuffle,
		"chunk-records": number(c.ChunkRecords), "chunk-bytes": number(c.ChunkBytes),
	}
}

// hdf5Options are those of package hdf5; nil for none.
func (c Compress) hdf5Options() *hdf5.Compression {
	if !c.On {
		return nil
	}
	shuffle := map[string]hdf5.Shuffle{"": hdf5.ShuffleAuto, "on": hdf5.ShuffleOn, "off": hdf5.ShuffleOff}[c.Shuffle]
	return &hdf5.Compression{Level: c.Level, ChunkRecords: c.ChunkRecords, ChunkBytes: c.ChunkBytes, Shuffle: shuffle}
}

// newCompressing returns what shows the progress of a Commit, still without a Writer. need is the bytes of all records.
func newCompressing(p Progress, need int64, appends bool) *compressing {
	if appends {
		need = 0 // what is there is handled once more
	}
	return &compressing{progress: p, need: need, stage: "compressing"}
}

// createHDF5 is hdf5.Create with the progress of w.
func (w *compressing) createHDF5(c Config, schema store.Schema, opts hdf5.Options) (_ store.Writer, err error) {
	opts.Compress, opts.Workers = c.Compress.hdf5Options(), c.Workers
	opts.Note, opts.Progress = w.note, w.add
	w.Writer, err = hdf5.Create(c.Dest, schema, opts)
	return w, err
}

// createZarr is zarr.Create with the progress of w.
func (w *compressing) createZarr(c Config, schema store.Schema, opts zarr.Options) (_ store.Writer, err error) {
	if z := c.Compress; z.Zstd {
		opts.Compress = &zarr.Compression{Level: z.Level, ChunkRecords: z.ChunkRecords, ChunkBytes: z.ChunkBytes}
	} else {
		w.stage = "writing chunks"
	}
	opts.Workers, opts.Progress = c.Workers, w.add
	w.Writer, err = zarr.Create(c.Dest, schema, opts)
	return w, err
}

// compressing is a Writer whose Commit shows how far it is.
type compressing struct {
	store.Writer
	progress Progress
	stage    string // of its Commit
	need     int64  // bytes of records; 0 if that is not known
	begun    bool
	done     int64           // bytes
	ctx      context.Context // of the run, once that commits
}

func (w *compressing) note(text string) { w.progress.Note(text + "\n") }

// add begins the stage with its first bytes, behind all notes. It ends Commit with the context.
func (w *compressing) add(n int64) error {
	if !w.begun {
		total := w.need >> 20
		if total == 0 {
			total = -1
		}
		w.progress.Begin(w.stage, total, "MiB")
		w.begun = true
	}
	before := w.done >> 20
	w.done += n
	w.progress.Add(w.done>>20 - before)
	if w.ctx == nil {
		return nil
	}
	return context.Cause(w.ctx)
}

// stopWith has the Commit of a Writer end with the context.
func stopWith(ctx context.Context, w store.Writer) {
	if c, ok := w.(*compressing); ok {
		c.ctx = ctx
	}
}

// Commit implements store.Writer.
func (w *compressing) Commit(info store.Info) (*store.Manifest, error) {
	m, err := w.Writer.Commit(info)
	if w.begun {
		w.progress.End()
	}
	return m, err
}

// printStorage says what became of arrays that were compressed.
func (s *Summary) printStorage(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(s.Storage)) {
		a := s.Storage[name]
		shuffle := choose(a.Filter == "gzip", choose(a.Shuffle, " with", " without")+" shuffle", "")
		fmt.Fprintf(w, "  %-8s %s: %s of %s, %.3f, by %s level %d%s, %s a chunk\n", "stored", name,
			cli.Bytes(a.Stored), cli.Bytes(a.Bytes), float64(a.Stored)/float64(max(1, a.Bytes)), a.Filter, a.Level,
			shuffle, cli.Counted(a.ChunkRows, "row"))
	}
}
