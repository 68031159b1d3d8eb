package prepare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/version"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/kinds"
	"github.com/penstock/penstock/prepare/source/producer"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Config has everything that a run depends on, by step. DefaultConfig gives the defaults, except
// for Source and Dest.
type Config struct {
	// The source of the samples.

	Source string // folder, file, or glob of files with the samples
	From   string // kind of source, one of source.Kinds, or "auto"
	Fields string `recipe:"fields"` // which columns become which fields, see column.ParseFields; "" for all

	// Missing is the value of empty cells and nulls, see source.Options; "skip" leaves their samples out, and counts them.
	Missing string `recipe:"missing"`

	// Records says where the records are in files whose arrays are in groups, see package unit; "" finds out. Align
	// says which rows become records where arrays have several lengths, and which columns a field has where units name
	// them differently.
	Records string     `recipe:"records"`
	Align   unit.Align `recipe:"align"`

	// Instances has fields whose rows are of the same instances: boxes, their labels, areas. A source may say so itself.
	Instances []string `recipe:"instances"`
	Outside   bool     // files that tables and links name may lie outside of the source's folder

	Images Images // what is done to images and arrays

	// Which samples become records, and in which order and splits.

	Skip      bool            // leave unreadable samples out instead of failing
	MaxErrors Limit           `recipe:"max-errors"` // with Skip: more bad samples than that are a failure
	Names     string          // whether records keep the names of their samples: "auto", "on" or "off"
	Dedup     bool            `recipe:"dedup"` // leave out samples whose content an earlier sample has
	Split     []samples.Share // nil: no splits, or those that the source has
	Lists     []string        // lists of units in the source that become its splits; nil chooses, see unit.Lists.Several
	Stratify  field.Strata    `recipe:"stratify"` // give every class its shares
	Shuffle   Seed            `recipe:"shuffle"`

	// NormalizeSplit is the split that the dataset's own mean and deviation come from, or "all";
	// "" is the split of training where there are splits, see [trainingSplit].
	NormalizeSplit string `recipe:"normalize-split"`

	// The dataset that is made, and its place.

	Dest       string // dataset to make
	Format     string // "flat", "hdf5", or "" to choose by Dest's name
	ShardBytes int64  // of a flat dataset's largest field, as flat.Options; 0 is its default
	Compress   Compress
	View       bool // write an HDF5 file over the .npy files, too
	Overwrite  bool
	Append     bool // add to an existing dataset
	Resume     bool // continue a run that was stopped, if there is one

	// Spool is a folder of this machine in which a dataset for a bucket is built; "" is the
	// system's folder for temporary files. It needs room for the whole dataset if that is an
	// HDF5 file or replaces another dataset; otherwise for some shards, as each shard is sent
	// when it is finished.
	Spool string

	Inherits bool `json:"-"` // options and transforms come from the dataset that is appended to

	// Goroutines, memory and time between checkpoints.

	Workers int // goroutines that decode, each one image at a time
	// bytes of records in flight, of large images that are decoded whole, and of one value; 0 means 64 MiB, 512 MiB, and
	// 256 MiB
	Memory int64

	// Checkpoint is how often a run that can be resumed saves its progress; 0 means
	// every 10 seconds.
	Checkpoint time.Duration

	// Rank says which part of the samples this run makes; the zero value means all samples.
	Rank Rank
}

// Seed asks for a random order.
type Seed struct {
	Set  bool
	Seed uint64
}

// String returns the number; "" if no seed is set.
func (s Seed) String() string {
	if !s.Set {
		return ""
	}
	return strconv.FormatUint(s.Seed, 10)
}

// DefaultConfig returns the Config of the command without flags.
func DefaultConfig() Config {
	return Config{
		From: "auto", Images: field.DefaultOptions(), Names: NamesAuto, Workers: runtime.GOMAXPROCS(0),
	}
}

// format returns the format that the dataset will have.
func (c Config) DatasetFormat() string {
	if c.Format != "" {
		return c.Format
	}
	return formatOf(c.Dest)
}

// formatOf returns the format of a dataset by its name.
func formatOf(dest string) string {
	switch {
	case slices.Contains(hdf5Extensions, extension(dest)):
		return part.HDF5
	case extension(dest) == ".zarr":
		return part.Zarr
	}
	return part.Flat
}

// hdf5Extensions end the names of HDF5 files.
var hdf5Extensions = []string{".h5", ".hdf5", ".hdf"}

// otherFiles are the extensions of files that are not datasets.
var otherFiles = []string{".zip", ".tar", ".gz", ".tgz", ".zst", ".csv", ".tsv", ".jsonl", ".json", ".parquet", ".npy",
	".npz", ".pt", ".pkl", ".mat", ".tfrecord"}

func extension(path string) string {
	if remote.IsURL(path) {
		if u, err := remote.ParseURL(path); err == nil {
			path = u.Base() // without the options
		}
	}
	return strings.ToLower(filepath.Ext(filepath.Clean(path)))
}

// DestProblem returns why nothing can be made under the name dest, "" if it can.
func DestProblem(dest, format string) string {
	ext := extension(dest)
	if format != "" {
		return ""
	}
	if meant := mistypedExtension(ext); meant != "" && !exists(dest) {
		return fmt.Sprintf("DEST %s: %s is not an ending that preprocess knows; did you mean %s? For a folder of this name "+
			"add --format flat", dest, ext, meant)
	}
	if !slices.Contains(otherFiles, ext) {
		return ""
	}
	return fmt.Sprintf("DEST %s: preprocess does not write %s files; give the name of a folder, or one that ends in .h5 "+
		"or .zarr, or add --format", dest, ext)
}

// mistypedExtension returns the extension of a format that is one letter away from ext, such as .h5 for .h6; "" if no
// such extension exists.
func mistypedExtension(ext string) string {
	if !strings.HasPrefix(ext, ".h") && !strings.HasPrefix(ext, ".z") || len(ext) < len(".h5") {
		return "" // as .v5 of a folder that is named for a version
	}
	known := append(slices.Clone(hdf5Extensions), ".zarr")
	if meant := suggest.Closest(ext, known); meant != "" && suggest.Distance(ext, meant) == 1 {
		return meant
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// MaxWorkers bounds --workers: each has its own buffers.
const MaxWorkers = 4096

// problems lists everything that is wrong with the Config, in terms of the flags.
func (c Config) Problems() (list []string) {
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(c.Workers < 1 || c.Workers > MaxWorkers, "--workers %d: must be from 1 to %d", c.Workers, MaxWorkers)
	add(c.Dest == StreamName, "DEST -: a dataset is not written to standard output; give the name of a folder, or one "+
		"that ends in .h5 or .zarr")
	add(c.Images.MaxPixels < 1, "--max-pixels %d: must be 1 or more", c.Images.MaxPixels)
	add(c.ShardBytes < 0, "--shard-size %d: must not be negative", c.ShardBytes)
	add(c.Images.Fit != "" && c.Images.Resize == nil, "--fit %s: says how to --resize, which is not given", c.Images.Fit)
	add(c.DatasetFormat() == part.HDF5 && c.ShardBytes != 0,
		"--shard-size: an HDF5 file has no shards; it is for --format flat and zarr")
	n, channels := len(c.Images.Normalize.Mean), c.Images.Channels()
	add(n > 1 && n != channels, "--normalize %s: has %d channels, but --color %s makes %d", c.Images.Normalize, n,
		c.Images.Color, channels)
	add((c.From == producer.Kind) != (c.Source == StreamName) && c.Source != "",
		"--from %s: standard input, SOURCE -, is a stream, and nothing else is", producer.Kind)
	add(c.Memory < 0, "--memory %d: must not be negative", c.Memory)
	add(c.MaxErrors.Set && !c.Skip, "--max-errors %v: counts samples that are left out, for which --on-error skip asks",
		c.MaxErrors)
	add(c.Stratify.Wanted && c.Split == nil, "--stratify: says how to --split, which is not given")
	add(c.Append && c.Overwrite, "--append and --overwrite: choose one")
	add(c.Append && c.Shuffle.Set, "--append and --shuffle: existing records stay in their order; shuffle while "+
		"training, or build the dataset again")
	add(c.NormalizeSplit != "" && !c.Images.Normalize.Dataset,
		"--normalize-split %s: says what --normalize dataset is computed from, which is not given", c.NormalizeSplit)
	add(c.Append && c.Images.Normalize.OfImages() && c.Images.WithImageDefaults().DType != tensor.Uint8,
		"--append and --normalize dataset: mean and std would describe the new records alone; give the numbers that "+
			"inspect shows")
	c.Images.EncodedProblems(add)
	for _, place := range []string{c.Source, c.Dest} {
		scheme, _, url := strings.Cut(place, "://")
		add(url && !remote.IsURL(place), "%s: %s:// cannot be used: only paths, and URLs at %s", remote.Redact(place),
			scheme, remote.SchemeList())
		scheme, rest, found := strings.Cut(place, ":/")
		add(found && !url && remote.IsURL(scheme+"://"+rest) && !vfs.Mounted(place), "%s: a URL has two slashes: %s://%s",
			place, scheme, rest)
	}
	if u, err := remote.ParseURL(c.Dest); err == nil {
		add(u.ReadOnly(), "%s: %s:// is read-only; write to a path, or to s3://, gs://, azblob:// or hdfs://", u, u.Scheme)
	}
	list = append(list, rankProblems(c)...)
	list = append(list, c.Compress.problems(c)...)
	list = append(list, viewProblems(c)...)
	if _, err := column.ParseFields(c.Fields); err != nil {
		list = append(list, err.Error())
	}
	if c = c.withRecords(); c.Records != "" {
		if _, err := unit.Parse(c.Records); err != nil {
			list = append(list, err.Error())
		}
	}
	if _, err := c.records(); err != nil {
		list = append(list, err.Error())
	}
	if _, err := c.Images.WithImageDefaults().Pipeline(); err != nil {
		list = append(list, strings.Split(err.Error(), "\n")...)
	}
	return list
}

// withRecords returns the Config with two settings that may be part of the Source's name: the Records that the name
// declares, if any, and the kind of source that these Records imply.
func (c Config) withRecords() Config {
	path, named := source.SplitRecords(c.Source)
	c.Source, c.Records = path, cmp.Or(c.Records, named)
	c.From = cmp.Or(kinds.KindOf(c.From, c.Records), c.From)
	return c
}

// records returns where the records of the source are, as package unit writes it.
func (c Config) records() (string, error) { return unit.WithAlign(c.Records, c.Align) }

// withImageDefaults returns the Config with the default settings for files of images.
func (c Config) withImageDefaults() Config {
	c.Images = c.Images.WithImageDefaults()
	return c
}

// Validate returns one error with all problems.
func (c Config) Validate() error {
	if p := c.Problems(); len(p) > 0 {
		return errors.New(strings.Join(p, "\n"))
	}
	return nil
}

// hints are sentences for people about settings that are allowed and look unusual.
func (c Config) hints() (list []string) {
	if c.Inherits {
		list = append(list, "appended with the recipe of "+c.Dest+" ("+shell.On("inspect show --recipe", c.Dest)+
			"), but for the flags that were given")
	}
	if c.Images.Resize == nil || c.Images.Crop == nil || c.Images.Transforms != nil {
		return list
	}
	last := func(lengths []int) int { return lengths[len(lengths)-1] }
	if c.Images.Crop[0] > c.Images.Resize[0] || last(c.Images.Crop) > last(c.Images.Resize) {
		list = append(list, "--crop is larger than what --resize makes, so images have black edges, as torchvision's have")
	}
	return list
}

// Limit is how many bad samples are too many: a number, or a share of all samples. The zero
// value is no limit.
type Limit struct {
	Set     bool
	Count   int64
	Percent float64 // if not 0, of all samples, instead of Count
}

// String returns the limit in the notation that ParseLimit reads.
func (l Limit) String() string {
	switch {
	case !l.Set:
		return ""
	case l.Percent != 0:
		return strconv.FormatFloat(l.Percent, 'g', -1, 64) + "%"
	}
	return strconv.FormatInt(l.Count, 10)
}

// of returns the limit as a number, for a total that is known.
func (l Limit) of(total int64) Limit {
	if l.Percent != 0 && total >= 0 {
		return Limit{Set: true, Count: int64(l.Percent / 100 * float64(total))}
	}
	return l
}

// exceeded reports whether bad of total samples are too many. If the
// number of samples is not known, a share counts from the first 1000 on.
func (l Limit) exceeded(bad, seen, total int64) bool {
	switch {
	case !l.Set:
		return false
	case l.Percent == 0:
		return bad > l.Count
	case total < 0:
		total = max(seen, 1000)
	}
	return float64(bad) > l.Percent/100*float64(total)
}

// ParseLimit reads 100 or 0.5%.
func ParseLimit(text string) (l Limit, err error) {
	if text == "" {
		return l, nil
	}
	l.Set = true
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		l.Percent, err = strconv.ParseFloat(percent, 64)
		if err != nil || !(l.Percent > 0) || l.Percent > 100 {
			return Limit{}, fmt.Errorf("must be a number of samples, or a share such as 0.5%%")
		}
		return l, nil
	}
	if l.Count, err = strconv.ParseInt(text, 10, 64); err != nil || l.Count < 0 {
		return Limit{}, fmt.Errorf("must be a number of samples, or a share such as 0.5%%")
	}
	return l, nil
}

// recipe returns the recipe of the dataset for its manifest: program, decoder, transforms and options.
func (c Config) recipe(j *execute.Job) (*store.Recipe, error) {
	text, err := field.Recipe(j.Fields, j.Source)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	if !c.Images.KeepEncoded && slices.ContainsFunc(j.Source, source.Field.Image) {
		c = c.withImageDefaults()
	}
	return &store.Recipe{Program: program(), Decoder: imagefile.Backend(), Transforms: text, Options: c.options()}, nil
}

// recipeOf returns the recipe of the job. If the job continues the run of another process,
// that is the recipe of the other run. The caller may change it.
func (r *run) recipeOf(j *execute.Job) (*store.Recipe, error) {
	if r.task.recipe == nil {
		return r.recipe(j)
	}
	recipe := *r.task.recipe
	recipe.Options = maps.Clone(recipe.Options)
	return &recipe, nil
}

// options returns the recipe's flags with their values, those aside that say nothing.
func (c Config) options() map[string]string {
	all := c.recipeFlags()
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	maps.Copy(all, FixedOptions)
	return all
}

// RecipeFlags returns the flags that a recipe has: all that the bytes of a dataset depend on, transforms aside.
func RecipeFlags() []string { return slices.Sorted(maps.Keys(Config{}.recipeFlags())) }

// recipeFlags returns all flags that a recipe may have, with their values. Most come from fields of the Config
// that have a tag; flags that write a value in other words are listed here. A flag with the value "" is left out
// of the recipe.
func (c Config) recipeFlags() map[string]string {
	all := map[string]string{
		"alpha": c.Images.Rules.AlphaName(), "exif-orientation": choose(c.Images.Rules.Orient, "applied", "ignored"),
		"sixteen-bit": field.Depths[c.Images.Rules.Deep], "cmyk": choose(c.Images.Rules.RefuseCMYK, "refused", "converted"),
		"on-error": choose(c.Skip, "skip", "fail"), "split": samples.SplitText(c.Split) + strings.Join(c.Lists, ","),
		"from": choose(c.From == "auto", "", c.From), "names": choose(c.Names == NamesAuto, "", c.Names),
		"compress":     c.Compress.text(),
		"jpeg-quality": choose(c.Images.Shrinks(), strconv.Itoa(c.Images.JPEGQuality()), ""),
		"shard-size":   choose(c.ShardBytes != 0 && c.DatasetFormat() != part.HDF5, strconv.FormatInt(c.ShardBytes, 10), ""),
	}
	for _, options := range []any{c, c.Images, c.Compress} {
		addTagged(all, options)
	}
	return all
}

// addTagged adds the fields of a struct that have the tag recipe, which names their flag: texts, numbers, switches and
// lists. The zero value says nothing.
func addTagged(all map[string]string, options any) {
	for f, v := range reflect.ValueOf(options).Fields() {
		name, ok := f.Tag.Lookup("recipe")
		switch {
		case !ok:
		case v.IsZero():
			all[name] = ""
		case v.Kind() == reflect.Slice:
			all[name] = strings.Join(v.Interface().([]string), ",")
		default:
			all[name] = fmt.Sprint(v.Interface())
		}
	}
}

// FixedOptions are options that a recipe states and no flag changes.
var FixedOptions = map[string]string{"icc-profile": "ignored", "frame": "first"}

// imagePipeline returns the transforms that the flags ask for of files of images.
func (c Config) imagePipeline() (*transforms.Pipeline, error) {
	if c.Images.KeepEncoded {
		return c.Images.ShrinkPipeline(nil)
	}
	return c.Images.Pipeline()
}

// RecipeOfImages returns the recipe that a manifest would have for making records of image files.
func (c Config) RecipeOfImages() (*store.Recipe, error) {
	if !c.Images.KeepEncoded {
		c = c.withImageDefaults()
	}
	text := c.Images.Transforms
	if text == nil && (!c.Images.KeepEncoded || c.Images.Shrinks()) {
		p, err := c.imagePipeline()
		if err != nil {
			return nil, err
		}
		if text, err = json.Marshal(p); err != nil {
			return nil, err
		}
	}
	return &store.Recipe{Program: program(), Options: c.options(), Transforms: text}, nil
}

// choose returns yes or no.
func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// StreamName is the SOURCE that is standard input.
const StreamName = "-"

// rankProblems lists the settings that several processes together cannot carry out.
func rankProblems(c Config) (list []string) {
	if c.Rank.Size == 0 {
		return nil
	}
	if c.Append {
		list = append(list, "--append and --rank: parts are of new datasets; build one from the new samples, and append that")
	}
	if c.Images.Normalize.OfImages() && c.Images.WithImageDefaults().DType != tensor.Uint8 && c.Images.Transforms == nil {
		list = append(list, errFigures.Error())
	}
	return list
}

// viewProblems says why there can be no view.
func viewProblems(c Config) []string {
	switch {
	case !c.View:
		return nil
	case c.Rank.Size > 0:
		return []string{"--view: a part has none; add it to the whole dataset: " + shell.On("preprocess merge", c.Dest) +
			", then " + shell.On("inspect view", c.Dest)}
	case c.DatasetFormat() == part.Zarr:
		return []string{"--view: a view is for a folder of .npy files, and DEST is Zarr"}
	case c.DatasetFormat() != part.Flat:
		return []string{"--view: DEST is an HDF5 file already; a view is for a folder of .npy files"}
	}
	return nil
}

// Values of RecordOptions.Names.
const (
	NamesAuto = "auto" // where a record is a file, unless that costs a copy of the dataset
	NamesOn   = "on"
	NamesOff  = "off"
)

// newSplitter returns the Splitter that a run begins with. Copies are not looked for where none become records.
func newSplitter(c Config) *samples.Splitter {
	strata := samples.NoStrata
	if c.Stratify.Wanted {
		strata = samples.WithCopies
		if c.Dedup {
			strata = samples.ByClass
		}
	}
	return samples.NewSplitter(c.Split, strata)
}

var errFigures = errors.New("--normalize dataset and --rank: mean and std of all samples are needed before the first " +
	"is written, and no process sees all; give MEAN/STD as numbers, or store uint8")

// program names this program and its version.
func program() string { return "penstock " + version.Version() }
