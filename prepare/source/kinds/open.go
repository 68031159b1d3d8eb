// Package kinds opens sources of any kind. It is the only package that imports the packages of all kinds.
//
// [Open] detects the kind of a path (package source has the rules: first bytes, names of files, the layout of a
// folder), opens it with the package of that kind, and applies what all kinds share: declarations of records in
// units, partitions in folder names, and the check that an option applies to the kind. [Declare] adds the meanings
// that the user gives to fields. An error about an option says which kinds take it.
package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/archive"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/arrow"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/dataset"
	"github.com/penstock/penstock/prepare/source/folder"
	"github.com/penstock/penstock/prepare/source/labels"
	"github.com/penstock/penstock/prepare/source/mds"
	"github.com/penstock/penstock/prepare/source/parquet"
	"github.com/penstock/penstock/prepare/source/rows"
	"github.com/penstock/penstock/prepare/source/table"
	"github.com/penstock/penstock/prepare/source/tfrecord"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/prepare/source/zarr"
)

// Open opens the source at path: a folder, a file, or for many kinds a glob of files. It decides what is common to
// all samples: their number, types and class names. After the end of ctx, the error is its cause. The caller closes
// the source.
func Open(ctx context.Context, path string, opts source.Options) (source.Source, error) {
	path, records := source.SplitRecords(path)
	// An option comes before a declaration in the path.
	opts.Records = cmp.Or(opts.Records, records)
	if opts.Records != "" {
		if _, err := unit.Parse(opts.Records); err != nil {
			return nil, fmt.Errorf("source %s: %w", path, err)
		}
	}
	kind := KindOf(opts.Kind, opts.Records)
	if kind == "" {
		var err error
		if kind, err = detect(ctx, path, opts); err != nil {
			return nil, err
		}
	}
	open, ok := openers[kind]
	if !ok {
		return nil, fmt.Errorf("source %s: unknown kind %q; known are %s", path, kind, strings.Join(source.Kinds, ", "))
	}
	if kind == rawKind && KindOf("", opts.Records) != rawKind {
		return nil, fmt.Errorf("source %s: --from %s: files without a header have the type that is declared: %s", path, kind,
			source.RawFlag)
	}
	if opts.Records != "" && !slices.Contains(withUnits, kind) {
		return nil, fmt.Errorf("source %s: records: a source of kind %s has its records in one place; units are groups and "+
			"files of %s; files without a header have the type that is declared: %s", path, kind, strings.Join(withUnits, ", "),
			source.RawFlag)
	}
	if opts.Missing != "" && !slices.Contains(withMissing, kind) {
		return nil, fmt.Errorf("source %s: --missing: a source of kind %s has no missing values; they are in %s", path, kind,
			strings.Join(withMissing, ", "))
	}
	selection, err := column.ParseFields(opts.Fields)
	if err != nil {
		return nil, err
	}
	// Fields that nobody needs are not opened, so units may differ in them.
	if opts.Seen == nil {
		opts.Seen = func(int64) {}
	}
	root, err := openRoot(path, source.Options{Kind: kind, Outside: opts.Outside})
	if err != nil {
		return nil, err
	}
	// A single file without a declaration is opened as itself, and several are units. Without any, the source has
	// partitions or is of another kind.
	files, err := unitFiles(ctx, root, path, kind, opts.Records)
	var s source.Source
	switch {
	case err != nil:
	case len(files) == 1 && opts.Records == "":
		s, err = open(ctx, root, files[0], opts, selection)
	case files != nil:
		if s, err = openUnitFiles(ctx, root, path, kind, files, opts, selection); err != nil {
			err = fmt.Errorf("source %s: %w", path, err)
		}
	default:
		if files = partitionFiles(root, path, kind); files != nil {
			s, err = openPartitions(ctx, root, path, kind, files, opts, selection)
		} else {
			s, err = open(ctx, root, path, opts, selection)
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

// withMissing are the kinds whose values can be missing.
var withMissing = []string{"csv", "jsonl", "parquet", "arrow", "tfrecord", "mds"}

// withUnits are the kinds whose records may be units, or rows of units.
var withUnits = []string{"hdf5", "zarr", "npz", "npy", "safetensors", rawKind}

// HasUnits reports whether a source of a kind has arrays, whose records may be units, or rows of units.
func HasUnits(kind string) bool { return slices.Contains(withUnits, kind) }

// openRoot is source.OpenRoot. For a missing path, it returns the error that names the path as the user typed it.
func openRoot(path string, opts source.Options) (*vfs.Root, error) {
	root, err := source.OpenRoot(path, opts)
	if err != nil {
		if _, missing := source.Files(path); missing != nil {
			return nil, missing
		}
		return nil, fmt.Errorf("source %s: %w", path, source.WithoutPath(err))
	}
	return root, nil
}

// detect returns the kind of a source, from opts.Found if it was detected before. It is an error if a folder also
// holds data that this kind would leave out.
func detect(ctx context.Context, path string, opts source.Options) (kind string, err error) {
	root, err := openRoot(path, source.Options{Outside: opts.Outside})
	if err != nil {
		return "", err
	}
	defer root.Close()
	if kind = opts.Found; kind == "" {
		if kind, err = source.DetectIn(root, path); err != nil {
			return "", err
		}
	}
	return kind, source.Alone(ctx, root, path, kind)
}

// openers has the function that opens a source of each kind. The function owns root on success only.
var openers = map[string]openFunc{
	"imagefolder": openFolder, "csv": table.OpenCSV, "jsonl": table.OpenJSONL, "tar": archive.Open, "zip": archive.OpenZip,
	"npy": array.OpenNPY, "npz": array.OpenNPZ, "safetensors": array.OpenSafetensors,
	rawKind: nil, // its files are units
	"idx":   array.OpenIDX, "cifar": array.OpenCIFAR, "hdf5": dataset.OpenHDF5, "flat": dataset.OpenFlat, "parquet": parquet.Open,
	"tfrecord": tfrecord.Open, "arrow": arrow.Open, "mds": mds.Open, "tokens": rows.OpenTokens, "zarr": zarr.Open,
	"view": openView,
	"coco": labels.COCO, "voc": labels.VOC, "yolo": labels.YOLO, "maskfolder": labels.Masks,
	"labelme": labels.Labelme,
}

// openFolder opens a folder of images. Detection looks at few names of large folders, so a LabelMe folder may have
// been taken for images; its JSON files then make opening fail, and only then all names are looked at.
func openFolder(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	err := fmt.Errorf("source %s: --fields: a folder of images has no columns", path)
	alone := opts.Kind == "imagefolder"
	if selection == nil {
		var s *folder.Folder
		if s, err = folder.Open(ctx, root, path, folder.Options{IsImage: opts.IsImage, Seen: opts.Seen, Alone: alone,
			Hold: opts.Places}); err == nil {
			return s, nil
		}
	}
	if !alone && ctx.Err() == nil && source.IsLabelMe(root, path) {
		return labels.Labelme(ctx, root, path, opts, selection)
	}
	return nil, err
}

// openFunc opens a source of one kind.
type openFunc func(ctx context.Context, root *vfs.Root, path string, opts source.Options,
	selection []column.Selection) (
	source.Source, error)

// Check returns an error if a quick look at path shows that it is no source of that kind.
func Check(path, kind string) error {
	path, _ = source.SplitRecords(path)
	switch kind {
	case "imagefolder":
		return folder.Check(path)
	case "", "auto":
		_, err := source.Detect(path)
		return err
	}
	_, err := source.Files(path)
	return err
}
