package prepare

import (
	"context"
	"fmt"
	"strconv"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/store/zarr"
)

// Compress says how the arrays of an HDF5 file or of Zarr are compressed. The zero value is no compression.
type Compress struct {
	Method       Method
	Level        int    // 1 to 9, of zstd to 22; 0 takes what a sample of the records asks for, of zstd 3
	ChunkRecords int64  `recipe:"chunk-records"`
	ChunkBytes   int64  `recipe:"chunk-bytes"`
	Shuffle      string `recipe:"shuffle-bytes"` // "on", "off", or "" for what a sample asks for
}

// Method is a way to compress.
type Method string

// The methods: each container has its own.
const (
	Uncompressed Method = ""
	Gzip         Method = "gzip" // of HDF5
	Zstd         Method = "zstd" // of Zarr
)

// Methods are the codecs of the formats that compress.
var Methods = map[string]Method{HDF5: Gzip, Zarr: Zstd}

// problems lists what is wrong with the choice, in terms of the flags.
func (c Compress) problems(all Config) (list []string) {
	switch asked := c != (Compress{}); {
	case asked && all.DatasetFormat() == Flat:
		list = append(list, "--compress: is for HDF5 files and Zarr, such as DEST.h5 or DEST.zarr; a flat dataset is "+
			"mapped as it is")
	case asked && all.Append:
		list = append(list, "--append and --compress: new records are stored as the existing ones are; leave --compress, "+
			"--chunk-records, --chunk-bytes and --shuffle-bytes out")
	case c.Method != Uncompressed && c.Method != Methods[all.DatasetFormat()]:
		list = append(list, fmt.Sprintf("--compress %s: %s takes %s", c.Method,
			choose(c.Method == Zstd, "an HDF5 file", "Zarr"), Methods[all.DatasetFormat()]))
	case c.Method == Zstd && c.Shuffle != "":
		list = append(list, "--shuffle-bytes: is a filter of HDF5 files")
	case asked && c.Method == Uncompressed:
		list = append(list, "--chunk-records, --chunk-bytes, --shuffle-bytes: say how to --compress, which is not given")
	}
	if c.ChunkRecords > 0 && c.ChunkBytes > 0 {
		list = append(list, "--chunk-records and --chunk-bytes: choose one")
	}
	return list
}

// text returns the value of the flag --compress, "" without compression.
func (c Compress) text() string {
	level := choose(c.Level > 0, ":"+strconv.Itoa(c.Level), "")
	return choose(c.Method != Uncompressed, string(c.Method)+level, "")
}

// hdf5Options returns the options of package hdf5; nil stores without compression.
func (c Compress) hdf5Options() *hdf5.Compression {
	if c.Method != Gzip {
		return nil
	}
	shuffle := map[string]hdf5.Shuffle{"": hdf5.ShuffleAuto, "on": hdf5.ShuffleOn, "off": hdf5.ShuffleOff}[c.Shuffle]
	return &hdf5.Compression{Level: c.Level, ChunkRecords: c.ChunkRecords, ChunkBytes: c.ChunkBytes, Shuffle: shuffle}
}

// newCompressing returns a compressing without a Writer, which the options of the Writer need first. need is the bytes
// of all records.
func newCompressing(p Progress, need int64, appends bool) *compressing {
	if appends {
		need = 0 // the existing records are processed again
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
	if z := c.Compress; z.Method == Zstd {
		opts.Compress = &zarr.Compression{Level: z.Level, ChunkRecords: z.ChunkRecords, ChunkBytes: z.ChunkBytes}
	} else {
		w.stage = "writing chunks"
	}
	opts.Workers, opts.Progress = c.Workers, w.add
	w.Writer, err = zarr.Create(c.Dest, schema, opts)
	return w, err
}

// compressing is a Writer whose Commit shows its progress. Arrays are compressed in Commit, after all samples: without
// it, a long run would seem to hang at its end.
type compressing struct {
	store.Writer
	progress Progress
	stage    string // of its Commit
	need     int64  // bytes of records; 0 if that is not known
	begun    bool
	done     int64           // bytes
	ctx      context.Context // of the run, once that commits
}

// AppendBlock adds the records of a block, see write.AppendBlock.
func (w *compressing) AppendBlock(b *digest.Block) error { return write.AppendBlock(w.Writer, b) }

func (w *compressing) note(text string) { w.progress.Note(text + "\n") }

// add begins the stage with its first bytes, after all notes. It ends Commit if the context is done.
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

// stopWith lets the Commit of a Writer end early when the context is done.
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
