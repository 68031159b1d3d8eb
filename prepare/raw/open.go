// Package raw reads raw samples as the loader reads datasets: by number, in any order. A [Source] is a
// loader.Source over a folder of images, an archive or a table that nobody prepared. It has the records that
// preprocess --keep-encoded would write, in the same order: image files stay files, which the loader decodes.
//
// [Open] lists the samples once (a listing), and makes records of a source's samples (records). Values are read
// from the files when they are asked for, so a Source takes no disk, and every epoch pays for opening and parsing.
// Formats that can only be read from the front are held in memory, up to mostHeld; larger ones are refused with the
// command that prepares them. Sources in a bucket are mounted (place), and the records that the loader announces
// are fetched ahead.
//
// A [Fingerprint] tells whether files changed since a state of the loader or a cache was made of them. The raw
// cache keeps decoded records in a dataset, which Use puts in place of the files; Renew brings the cache up to a
// later state of the source and reads only what changed.
package raw

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/kinds"
	"github.com/penstock/penstock/prepare/source/zarr"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/transforms"
)

// Options configures Open. The zero value is usable.
type Options struct {
	From      string   // kind of source, one of source.Kinds; "" detects it
	Records   string   // declaration of the records, in the notation of package unit; "" guesses it
	Columns   string   // which columns become which fields, in the notation of preprocess --fields; "" for all
	Instances []string // fields whose rows are the instances of one list
	Outside   bool     // files that tables and links name may be outside of the source's folder

	Fields []string // fields of the Source, in this order: names, or entries of Columns; nil for all

	// Split is the split to load: a split of the source's folders or files, one of Shares, or a list of units in an
	// HDF5 file; "" means all records.
	Split string

	// Shares divides records by their names, such as train=0.8,val=0.2. A record stays in its split when other
	// records are added.
	Shares string

	// Seen is called now and then with the number of samples found so far, while the source is listed. It may be nil.
	Seen func(n int64)

	// Bucket opens the bucket of a URL; nil means cloud.Open.
	Bucket func(ctx context.Context, url string) (remote.Bucket, *remote.URL, error)

	// Warn is called with a line for each repeated request to a bucket. It may be nil.
	Warn func(text string)

	// Head decodes image files, so that records are pixels, see [Source.Decode]; nil keeps files.
	Head *transforms.Pipeline
}

// datasets are the kinds that package mmapds opens itself.
var datasets = []string{"flat", "hdf5", "zarr", "view"}

// Is reports whether there are raw samples at a local path, and not a dataset. A folder of .npy files does not
// count if they may be the remains of a dataset. Tables with a version log and files of formats that are not read
// do count, so that Open is called and its error is shown. So do arrays of which fields are declared: x:hwc.
func Is(path string, fields ...string) bool {
	path, records := source.SplitRecords(path)
	switch {
	case remote.IsURL(path):
		return false
	case records != "" || column.Declared(fields) != "" && Reads(path):
		return true
	case strings.HasSuffix(path, ".npy") && !isSeveral(path):
		return false
	}
	kind, err := source.Detect(path)
	if err == nil && kind == "hdf5" {
		return isSeveral(path) || strings.EqualFold(filepath.Ext(path), ".h5ad")
	}
	if err == nil && kind == "zarr" {
		files, err := source.Files(path)
		return err == nil && (files[0] != path || zarr.IsRaw(path))
	}
	if err == nil && kind == "npy" {
		return isSeveral(path) && !isRest(path)
	}
	var foreign source.ForeignError
	return errors.Is(err, source.ErrVersioned) || errors.As(err, &foreign) || err == nil && !slices.Contains(datasets, kind)
}

// Loads reports whether the named fields of a local path, or all of its fields, are loaded as raw samples: [Is] holds, or
// package mmapds cannot map the file of another program.
func Loads(path string, fields ...string) bool {
	if Is(path, fields...) {
		return true
	}
	ds, err := mmapds.Open(path, mmapds.WithFields(fields...))
	if err == nil {
		_ = ds.Close() // nothing was read
	}
	return Instead(path, err)
}

// Instead reports whether Open reads the file that package mmapds refused to open with err.
func Instead(path string, err error) bool { return errors.Is(err, store.ErrUnsupported) && Reads(path) }

// OpenPart opens a local dataset or raw samples, as views.Options.Open: a view may name either.
func OpenPart(ctx context.Context, path string, fields []string, split string) (views.Part, error) {
	open := func() (views.Part, error) { return Open(ctx, path, Options{Fields: fields, Split: split}) }
	if Is(path, fields...) {
		return open()
	}
	ds, err := mmapds.Open(path, mmapds.WithFields(fields...), mmapds.WithSplit(split))
	if Instead(path, err) {
		return open()
	}
	if err != nil {
		return nil, err
	}
	return ds, nil
}

func init() { kinds.OpenPart = OpenPart }

// isRest reports whether a folder has .npy files with names that end in five digits. Shards of a flat dataset are named
// so: the folder may be one that lost its manifest, and must not be taken for a folder of raw samples.
func isRest(path string) bool {
	files, _ := filepath.Glob(filepath.Join(path, "*-[0-9][0-9][0-9][0-9][0-9].npy"))
	return len(files) > 0
}

// isSeveral reports whether a path is a folder or a glob.
func isSeveral(path string) bool {
	files, err := source.Files(path)
	if err != nil || files[0] != path {
		return err == nil
	}
	info, err := os.Stat(files[0])
	return err == nil && info.IsDir()
}

// Reads reports whether Open reads a file of another program that package mmapds may not be able to map.
func Reads(path string) bool {
	if _, _, ok := source.SplitGeneration(path); ok { // of a dataset, which it is not
		return false
	}
	kind, err := source.Detect(path)
	return err == nil && slices.Contains([]string{"hdf5", "zarr", "npz", "npy", "safetensors"}, kind)
}

// Open lists a source, which is a path or a URL, and looks at its first usable sample, which decides the types of
// all samples. After the end of ctx, Open and all reads of the Source return its cause.
func Open(ctx context.Context, path string, o Options) (*Source, error) {
	path, records := source.SplitRecords(path)
	o.Records = cmp.Or(o.Records, records)
	at, err := openPlace(ctx, path, o)
	if err != nil {
		return nil, err
	}
	s, err := openAt(ctx, at, o)
	if err != nil {
		at.close()
		return nil, at.buckets.Explain(err)
	}
	return s, nil
}

// openAt opens a source at a place. Before anything is listed, it refuses what would be slow or impossible:
// datasets in buckets, which package mmapds reads, and large files that can only be read in order.
func openAt(ctx context.Context, at *place, o Options) (*Source, error) {
	kind, detected := kinds.KindOf(o.From, o.Records), ""
	// The result is passed on as Options.Found, so that the kind is detected once.
	if kind == "" {
		detected, _ = source.Detect(at.path) // Open reports what is wrong
		kind = detected
	}
	if remote.IsURL(at.text) && slices.Contains(datasets, detected) {
		return nil, datasetError(at.path, detected)
	}
	if slices.Contains(readInOrder, kind) { // said before it is read
		if err := checkHeld(at.path, kind); err != nil {
			return nil, err
		}
	}
	if kind == "tar" {
		at.hold()
	}
	if selection := column.Declared(o.Fields); o.Columns == "" && selection != "" {
		o.Columns, o.Fields = selection, nil
	}
	if o.Columns == "" && len(o.Fields) > 0 && kinds.HasUnits(kind) { // arrays that are not read may have another length
		o.Columns, o.Fields = column.Names(o.Fields), nil
	}
	opts := source.Options{
		NoNames: true, Places: true, Kind: kinds.KindOf(o.From, o.Records), Found: detected, Records: o.Records, Fields: o.Columns,
		Split: o.Split, Outside: o.Outside, Seen: o.Seen,
		IsImage: func(head []byte) bool { return imagefile.Sniff(head) != "" },
	}
	src, err := kinds.Open(ctx, at.path, opts)
	if err != nil && o.Columns == "" && len(o.Fields) > 0 && context.Cause(ctx) == nil { // a column that is not wanted may be why
		opts.Fields = column.Names(o.Fields)
		if chosen, e := kinds.Open(ctx, at.path, opts); e == nil {
			src, err, o.Columns, o.Fields = chosen, nil, opts.Fields, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if kind := src.Info().Kind; remote.IsURL(at.text) && slices.Contains(datasets, kind) {
		return nil, errors.Join(datasetError(at.path, kind), src.Close())
	}
	s, err := newSource(ctx, at, src, o)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return s, nil
}

func datasetError(path, kind string) error {
	return fmt.Errorf("source %s: it is a dataset of kind %s, and not raw samples", path, kind)
}

// newSource returns the Source over src, which it owns on success.
func newSource(ctx context.Context, at *place, src source.Source, o Options) (*Source, error) {
	info, err := kinds.Declare(src.Info(), o.Columns, o.Instances)
	if err != nil {
		return nil, err
	}
	list, err := list(ctx, at.path, src)
	if err != nil {
		return nil, err
	}
	at.early = at.early || at.fsys != nil && info.Kind == "parquet" // which holds what it reads
	s := &Source{src: src, place: at, declared: o.declared(info),
		records: records{path: at.path, outside: o.Outside, info: info, listing: list}}
	// nil if the source is not Filed.
	s.records.filed, _ = src.(source.Filed)
	err = s.settle(o)
	if err == nil && o.Head != nil {
		err = s.Decode(o.Head)
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", at.path, err)
	}
	return s, nil
}

// declared returns the options that decide which samples and fields the source of an info has.
func (o Options) declared(info source.Info) Options {
	d := Options{Records: o.Records, Columns: o.Columns}
	if slices.ContainsFunc(info.Lists, func(l store.Split) bool { return l.Name == o.Split }) {
		d.Split = o.Split
	}
	return d
}

// settle decides which records the Source has, and their schema.
func (s *Source) settle(o Options) (err error) {
	l := &s.records
	if l.job, err = newJob(l.listing, l.info, withoutNames, nil); err != nil {
		return err
	}
	if err := l.sort(); err != nil {
		return err
	}
	if err := l.choose(o.Split, o.Shares); err != nil {
		return err
	}
	if s.schema, err = only(l.job.Schema, o.Fields); err != nil {
		return err
	}
	for _, f := range s.schema.Fields {
		s.specs = append(s.specs, f.Spec)
	}
	if s.id, err = l.identity(o.Split, o.Shares); err != nil {
		return err
	}
	about, err := describe(l, o.Split, o.Shares)
	l.about, l.id = string(about), s.id
	return err
}

// only returns the schema of the named fields; nil means all fields.
func only(schema store.Schema, fields []string) (out store.Schema, err error) {
	if fields == nil {
		return schema, nil
	}
	for _, name := range fields {
		i := schema.Index(name)
		if i < 0 {
			var names []string
			for _, f := range schema.Fields {
				names = append(names, f.Name)
			}
			return out, fmt.Errorf("there is no field %q; the fields are %s", name, source.Enumerate(names, 12))
		}
		out.Fields = append(out.Fields, schema.Fields[i])
	}
	return out, nil
}
