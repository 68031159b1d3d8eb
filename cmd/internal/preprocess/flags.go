package preprocess

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/prepare/rechunk"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/producer"
	"github.com/penstock/penstock/tensor"
)

// flags holds the flags of the command as text, and the Config that check builds from them. Flags
// whose text needs no parsing are fields of config directly: see table.
type flags struct {
	config prepare.Config

	resize, crop, color, layout, dtype string
	normalize, shardSize, onError      string
	orientation, alpha, deep, cmyk     string
	split, shuffle, maxErrors, memory  string
	rechunk                            string
	chunks                             rechunk.Options
	pipeline                           string
	packing                            compressFlags
	rank, worldSize                    string
	workers                            int
	printPipeline                      bool
	set                                *pflag.FlagSet
	progress                           string
	quiet, version                     bool
}

// newFlags returns the flags with their defaults, which the help shows.
func newFlags() *flags {
	return &flags{config: prepare.DefaultConfig(), normalize: "none", onError: "fail", orientation: "ignored",
		alpha: "dropped", deep: "kept", cmyk: "converted", progress: "auto",
		packing: compressFlags{compress: "none", shuffle: "auto"}}
}

// choices lists the values of a flag besides its default. The help, the checks and the
// shell completion are made from it.
var choices = map[string][]string{
	"from":       append(append([]string{"auto"}, source.Kinds...), producer.Kind),
	"format":     {prepare.Flat, prepare.HDF5, prepare.Zarr},
	"fit":        {"shorter", "longer", "exact", "cover", "pad"},
	"filter":     {"bilinear", "bicubic", "lanczos", "box", "hamming", "nearest"},
	"pass-order": {"auto", "horizontal"},
	"color":      {"rgb", "gray"},
	"layout":     {"chw", "hwc"},
	"dtype":      {"uint8", "uint16", "float16", "bfloat16", "float32"},
	"on-error":   {"fail", "skip"},
	"names":      {prepare.NamesAuto, prepare.NamesOn, prepare.NamesOff},

	"progress": {"auto", "json"},

	"exif-orientation": {"ignored", "applied"},
	"alpha":            {"dropped", "white", "black", "refused"},
	"sixteen-bit":      prepare.Depths(),
	"shuffle-bytes":    {"auto", "on", "off"},
	"cmyk":             {"converted", "refused"},
}

// flagGroup is the flags under one heading of the help; the heading "" means none.
type flagGroup struct {
	heading string
	flags   []flagRow
}

// flagRow is a flag: its name, the variable with its default and later its value, and its help.
type flagRow struct {
	name string
	to   any // *string, *bool, *int, *[]string, or a pflag.Value
	help string
}

// table lists all flags in the order of the help. It is the only list: registration, help,
// completion and docs/cli.md come from it.
func (f *flags) table() []flagGroup {
	c := &f.config
	of := func(name string) string { return strings.Join(choices[name], ", ") }
	return []flagGroup{
		{"Source and dataset", []flagRow{
			{"from", &c.From, "`KIND` of source: " + of("from")},
			{"outside", &c.Outside, "read files outside of the source's folder, if a table or a link names them"},
			{"fields", &c.Fields, "columns to read, their fields and types: `COLUMN=FIELD:TYPE,...`; see penstock help fields"},
			{"missing", &c.Missing, "`VALUE` of empty cells and nulls of tables: nan (of floats), a value, a class, or skip, " +
				"which leaves the samples out"},
			{"records", &c.Records, "where the records are in a file whose arrays are in groups: " +
				"`GROUPS` such as data/* (a record of each group), or data/*[:] (one of each row); " +
				"*.bin:float32[*,4] gives the type of files without a header"},
			{"align", &c.Align, "rows of arrays of several lengths in a group: `END` is start or end; genes of cells in " +
				"several files: intersection or union"},
			{"instances", &c.Instances, "`FIELDS` whose rows are of the same instances, such as boxes and labels"},
			{"format", &c.Format, "output `FORMAT`: " + of("format") + " (default from the name of DEST)"},
			{"shard-size", &f.shardSize, "`BYTES` per file of a flat dataset or Zarr (default 256MiB)"},
			{"overwrite", &c.Overwrite, "replace DEST if it exists"},
			{"split", &f.split, "split by content: `NAME=SHARE,...`, such as train=0.9,val=0.1; or by lists in an HDF5 file, such as " +
				"mask/train,mask/valid"},
			{"stratify", &c.Stratify, "with --split, give every class the same shares; `[=FIELD]` is the field of the classes, " +
				"where there are several"},
			{"shuffle", &f.shuffle, "store records in a random order given by `SEED`"},
			{"dedup", &c.Dedup, "skip samples with the content of an earlier one, also in DEST with --append"},
			{"names", &c.Names, "store the name of each record's file: `WHEN` is " + of("names") +
				"; auto leaves names out of HDF5 files that are written in place"},
			{"append", &c.Append, "add records to DEST, made by its recipe unless flags say otherwise"},
			{"view", &c.View, "also write view.h5, through which h5py reads the .npy files"},
		}},
		{"Compression and chunks", []flagRow{
			{"compress", &f.packing.compress, "compress the records: `METHOD` is none; of HDF5 gzip or gzip:1 (fast) " +
				"to gzip:9 (small); of Zarr zstd or zstd:1 to zstd:22"},
			{"chunk-records", &f.packing.chunkRecords,
				"compress `N` records per chunk (default 1, or 64 KiB of small records)"},
			{"chunk-bytes", &f.packing.chunkBytes, "compress about `BYTES` of records per chunk"},
			{"shuffle-bytes", &f.packing.shuffle, "HDF5 shuffle filter before gzip: `WHEN` is auto, on or off"},
			{"rechunk", &f.rechunk, "write arrays as they are into Zarr with chunks of `AXIS=SIZE,...`, such as " +
				"time=24,lat=128; --memory is 1GiB by default"},
		}},
		{"Geometry", []flagRow{
			{"independent", &c.Images.Independent, "`FIELDS` that do not lie on the images, and need not follow --resize and --crop"},
			{"resize", &f.resize, "resize images to `SIZE` pixels: one number, or HEIGHTxWIDTH"},
			{"fit", &c.Images.Fit, "what `FIT` to SIZE: " + of("fit") +
				" (default shorter for one number, exact for two)"},
			{"crop", &f.crop, "crop the center to `SIZE` after resizing"},
			{"filter", &c.Images.Filter, "resampling `FILTER` of Pillow: " + of("filter")},
			{"pass-order", &c.Images.PassOrder, "`ORDER` of the two passes of a resize: " +
				of("pass-order") + "; horizontal (first) is the order of Pillow up to 12"},
		}},
		{"Pixels", []flagRow{
			{"color", &f.color, "`CHANNELS` of images: " + of("color") + " (default rgb)"},
			{"layout", &f.layout, "`ORDER` of image axes: " + of("layout") + " (default chw)"},
			{"dtype", &f.dtype, "`TYPE` of images: " + of("dtype") +
				"; floats hold x/255 (default uint8; 16-bit and float files keep their type)"},
			{"exif-orientation", &f.orientation, "EXIF `ORIENTATION`: " + of("exif-orientation") +
				"; OpenCV applies it"},
			{"alpha", &f.alpha, "`ALPHA` channel: " + of("alpha") + "; white and black are backgrounds"},
			{"sixteen-bit", &f.deep,
				"images of 16 bits, floats or other channels than gray and RGB: `DEPTH` is " + of("sixteen-bit") +
					"; kept stores them as they are"},
			{"cmyk", &f.cmyk, "`CMYK` images: " + of("cmyk") +
				"; color profiles are ignored"},
			{"keep-encoded", &c.Images.KeepEncoded,
				"store image files instead of pixels; --resize shrinks large ones (default for " +
					"datasets that hold files, unless a flag asks for pixels)"},
			{"jpeg-quality", &c.Images.Quality, "JPEG `QUALITY` of shrunk files, 1 to 100 (default 90)"},
			{"larger-than", &c.Images.LargerThan,
				"shrink only files of more than `N` pixels on the side that --fit names (default SIZE)"},
			{"normalize", &f.normalize, "normalize images and arrays by `MEAN/STD`: numbers such as " +
				"0.5,0.5,0.5/0.25,0.25,0.25, or none, imagenet, inception, clip, dataset; uint8 images record it for the loader"},
			{"normalize-split", &c.NormalizeSplit,
				"compute --normalize dataset over `SPLIT`, or all (default the training split)"},
		}},
		{"Many machines, buckets", []flagRow{
			{"spool", &c.Spool, "build a dataset for a bucket in `FOLDER` (default the system's temporary folder)"},
			{"rank", &f.rank,
				"build part `R` of --world-size, from 0; auto reads the launcher's environment; see merge --help"},
			{"world-size", &f.worldSize, "number `N` of parts"},
		}},
		{"Run", []flagRow{
			{"workers", &f.workers, "`N` images decoded at a time (default one per core)"},
			{"on-error", &f.onError, "what to do at an unreadable sample: `ACTION` is " + of("on-error")},
			{"max-pixels", &c.Images.MaxPixels, "refuse images of more than `N` pixels"},
			{"pipeline", &f.pipeline,
				"read options and transforms from a YAML `FILE` or a recipe; flags take precedence"},
			{"print-pipeline", &f.printPipeline, "print the options and transforms as YAML and exit"},
			{"resume", &c.Resume, "continue a stopped run, or start if there is none"},
			{"max-errors", &f.maxErrors, "with --on-error skip, fail at more than `N` bad samples, or N%"},
			{"memory", &f.memory, "`BYTES` of records in flight, of large images but JPEG that are decoded, and " +
				"of one record (default 64MiB, 512MiB, 256MiB)"},
			{"progress", &f.progress, "progress on standard error: `FORMAT` is " + of("progress") +
				"; json is an object a line"},
			{"json", new(bool), "print the summary as JSON"},
			{"quiet", &f.quiet, "print errors only"},
		}},
		{"", []flagRow{
			{"version", &f.version, "print versions and build options"},
		}},
	}
}

// register declares the flags of table on a command, in groups, with completions for choices.
func (f *flags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	f.set = fs
	for _, g := range f.table() {
		var names []string
		for _, row := range g.flags {
			registerFlag(fs, row)
			names = append(names, row.name)
		}
		if g.heading != "" {
			cli.Group(cmd, g.heading, names...)
		}
	}
	fs.Lookup("stratify").NoOptDefVal = prepare.AnyField
	for name, list := range choices {
		if err := cmd.RegisterFlagCompletionFunc(
			name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic("preprocess: " + err.Error())
		}
	}
}

// registerFlag declares one row of the table. The flag's default is the variable's value.
func registerFlag(fs *pflag.FlagSet, row flagRow) {
	switch to := row.to.(type) {
	case *string:
		fs.StringVar(to, row.name, *to, row.help)
	case *bool:
		fs.BoolVarP(to, row.name, shorthands[row.name], *to, row.help)
	case *int:
		fs.IntVar(to, row.name, *to, row.help)
	case *[]string:
		fs.StringSliceVar(to, row.name, *to, row.help)
	case pflag.Value:
		fs.Var(to, row.name, row.help)
	}
}

// shorthands lists the flags that also have one letter.
var shorthands = map[string]string{"quiet": "q"}

// check turns the flags into the Config, or returns all their problems. The order matters: a
// pipeline file, or the recipe of DEST with --append, sets flags that the command line leaves out,
// so both are read before any value is parsed; a choice that does not exist is reset to its default
// before parse reads it, so that one wrong word is one problem.
func (f *flags) check(args []string) error {
	if f.version {
		return nil
	}
	if f.set.Changed("rechunk") {
		return f.checkRechunk(args)
	}
	var p problems
	c := &f.config
	usage := &cli.UsageError{Arguments: f.arguments(args)}
	f.readPipeline(&p)
	if f.set.Changed("workers") {
		c.Workers = f.workers
	}
	f.takeRecipe()
	f.set.VisitAll(p.choose)
	f.parse(&p)
	c.Images.Decode = f.set.Changed("keep-encoded") && !c.Images.KeepEncoded
	if f.quiet && f.progress != "auto" {
		p = append(p, "--quiet, --progress "+f.progress+": choose one")
	}
	usage.Problems = append(p, c.Problems()...)
	if usage.Arguments == "" && len(usage.Problems) == 0 {
		return nil
	}
	return usage
}

// parse reads the flags whose text has a form: sizes, shares, numbers, levels. An invalid value is
// added to p and left unset in the Config, so that the checks of the Config do not report it again.
func (f *flags) parse(p *problems) {
	var err error
	c := &f.config
	c.Images.Color, c.Images.Layout, c.Skip = f.color, strings.ToUpper(f.layout), f.onError == "skip"
	if f.dtype != "" {
		p.add("dtype", f.dtype, c.Images.DType.UnmarshalText([]byte(f.dtype)))
	}
	c.Images.Rules = prepare.Rules{Orient: f.orientation == "applied", RefuseAlpha: f.alpha == "refused",
		Alpha: prepare.Alphas()[f.alpha], Deep: prepare.Depth(slices.Index(prepare.Depths(), f.deep)),
		RefuseCMYK: f.cmyk == "refused"}
	if c.Images.DType == tensor.Uint8 && c.Images.Rules.Deep == prepare.KeepDeep {
		c.Images.Rules.Deep = prepare.HighByte // --dtype uint8 asks for this in other words
	}
	if c.Images.Resize, err = parseSize(f.resize); err != nil {
		c.Images.Fit = ""
	}
	p.add("resize", f.resize, err)
	c.Images.Crop, err = parseSize(f.crop)
	p.add("crop", f.crop, err)
	c.Images.Normalize, err = prepare.ParseNormalize(f.normalize)
	p.add("normalize", f.normalize, err)
	if f.split == "" || strings.Contains(f.split, "=") {
		c.Split, err = prepare.ParseSplit(f.split)
		p.add("split", f.split, err)
	} else {
		c.Lists = strings.Split(f.split, ",")
	}
	c.MaxErrors, err = prepare.ParseLimit(f.maxErrors)
	p.add("max-errors", f.maxErrors, err)
	if f.shuffle != "" {
		c.Shuffle.Set = true
		c.Shuffle.Seed, err = strconv.ParseUint(f.shuffle, 10, 64)
		if err != nil {
			err = errors.New("must be a whole number that is not negative")
		}
		p.add("shuffle", f.shuffle, err)
	}
	c.Compress = f.packing.parse(p)
	c.Memory, c.ShardBytes = p.bytes("memory", f.memory), p.bytes("shard-size", f.shardSize)
	if c.Rank, err = prepare.ParseRank(f.rank, f.worldSize); err != nil {
		*p = append(*p, err.Error())
	}
}

// readPipeline takes over options and transforms of the file of --pipeline.
func (f *flags) readPipeline(p *problems) {
	if f.pipeline == "" {
		return
	}
	file, err := readPipelineFile(f.pipeline)
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			*p = append(*p, fmt.Sprintf("--pipeline %s: %s", f.pipeline, line))
		}
		return
	}
	for _, text := range file.apply(f.set, &f.config) {
		*p = append(*p, fmt.Sprintf("--pipeline %s: %s", f.pipeline, text))
	}
	if f.config.DatasetFormat() == prepare.HDF5 && !f.set.Changed("shard-size") {
		f.shardSize = "" // the recipe of a flat dataset may be used for an HDF5 file, which has no shards
	}
	f.packing.forget(f.set, &f.config)
}

// ownRecords lists the flags of a recipe that an append does not take over: they describe the
// source, or how the existing records are stored, which the dataset itself says.
var ownRecords = []string{"from", "shuffle", "shard-size", "compress", "chunk-records", "chunk-bytes", "shuffle-bytes"}

// takeRecipe makes --append prepare records with the recipe that DEST records, so that old and new
// records are alike. Flags and a pipeline file take precedence. If the new source is of another
// kind than the old one, no recipe is taken: a dataset of new samples, for example, has been
// through the recipe already. A DEST that is missing, or that cannot be appended to, is reported
// later.
func (f *flags) takeRecipe() {
	c := &f.config
	if !c.Append || f.pipeline != "" || c.Dest == "" {
		return
	}
	recipe := c.RecipeThere()
	if recipe == nil {
		return
	}
	file := &pipelineFile{options: maps.Clone(recipe.Options), transforms: recipe.Transforms}
	maps.DeleteFunc(file.options, func(name, _ string) bool {
		return f.set.Lookup(name) == nil || slices.Contains(ownRecords, name)
	})
	if slices.ContainsFunc(transformFlags, f.set.Changed) {
		file.transforms = nil
	}
	if problems := file.apply(f.set, c); problems != nil {
		return // another version wrote the recipe, and this one refuses it; if the new records do not fit, the append fails later
	}
	c.Inherits = true
}

// problems are the problems of a command line, a sentence each.
type problems []string

// add appends the problem of a flag, unless err is nil.
func (p *problems) add(flag, value string, err error) {
	if err != nil {
		*p = append(*p, fmt.Sprintf("--%s %s: %v", flag, value, err))
	}
}

// bytes parses a size such as 256MiB; "" is 0, the default.
func (p *problems) bytes(flag, text string) (n int64) {
	if text != "" {
		var err error
		n, err = units.ParseBytes(text)
		p.add(flag, text, err)
	}
	return n
}

// choose checks that a flag has its default or one of its choices, and otherwise resets it to its
// default, so that later checks do not report the same word again. A flag without choices passes.
func (p *problems) choose(flag *pflag.Flag) {
	list, value := choices[flag.Name], flag.Value.String()
	if list == nil || value == flag.DefValue || slices.Contains(list, value) {
		return
	}
	*p = append(*p, fmt.Sprintf("--%s %s: %s", flag.Name, value, suggest.OneOf(value, list)))
	_ = flag.Value.Set(flag.DefValue) // a text
}

// arguments takes SOURCE and DEST, or returns their problem. --stratify has an optional value,
// which must follow "=": with a space, the field would be a third argument, so the message says so.
func (f *flags) arguments(args []string) string {
	if f.printPipeline && len(args) == 0 {
		return ""
	}
	if len(args) != 2 {
		hint := ""
		if len(args) == 3 && f.config.Stratify.String() == prepare.AnyField {
			hint = "; the field of --stratify follows an equals sign: --stratify=FIELD"
		}
		return fmt.Sprintf("needs two arguments, SOURCE and DEST, not %d%s", len(args), hint)
	}
	f.config.Source, f.config.Dest = args[0], args[1]
	if args[0] == "" || args[1] == "" {
		return "SOURCE and DEST must not be empty"
	}
	return prepare.DestProblem(args[1], f.config.Format)
}

// parseSize parses "224", "224x320" (height x width, as in PyTorch) or "", which is nil.
func parseSize(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, "x")
	var size []int
	for _, t := range parts {
		n, err := strconv.Atoi(t)
		if err != nil || n < 1 || n > 1<<20 || len(parts) > 2 {
			return nil, fmt.Errorf("must be a number of pixels or HEIGHTxWIDTH, such as 224 or 224x320")
		}
		size = append(size, n)
	}
	return size, nil
}
