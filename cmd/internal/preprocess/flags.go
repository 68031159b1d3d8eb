package preprocess

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/source"
)

// flags are the flags of the command as text, and the Config that check makes of them.
type flags struct {
	config Config

	resize, crop, color, layout, dtype string
	normalize, shardSize, onError      string
	orientation, alpha, deep, cmyk     string
	split, shuffle, maxErrors, memory  string
	pipeline                           string
	packing                            compressFlags
	rank, worldSize                    string
	printPipeline                      bool
	set                                *pflag.FlagSet
	json, quiet, version               bool
}

func newFlags() *flags { return &flags{config: DefaultConfig()} }

// choices lists what a flag may be; the first is the default, unless that is no flag at all.
var choices = map[string][]string{
	"from":     append([]string{"auto"}, source.Kinds...),
	"format":   {formatFlat, formatHDF5},
	"fit":      {"shorter", "longer", "exact", "cover", "pad"},
	"filter":   {"bilinear", "bicubic", "lanczos", "box", "hamming", "nearest"},
	"color":    {"rgb", "gray"},
	"layout":   {"chw", "hwc"},
	"dtype":    {"uint8", "float16", "bfloat16", "float32"},
	"on-error": {"fail", "skip"},

	"exif-orientation": {"ignored", "applied"},
	"alpha":            {"dropped", "white", "black", "refused"},
	"sixteen-bit":      {"high-byte", "refused"},
	"cmyk":             {"converted", "refused"},
}

func (f *flags) register(cmd *cobra.Command) {
	fs, c := cmd.Flags(), &f.config
	fs.SortFlags = false
	f.set = fs
	of := func(name string) string { return strings.Join(choices[name], ", ") }
	fs.StringVar(&c.From, "from", c.From, "`KIND` of source: "+of("from"))
	fs.StringVar(&c.Fields, "fields", "", "`LIST` of columns: COLUMN=FIELD:TYPE,..., where =FIELD and :TYPE may be left out; TYPE is "+source.TypeNames+"; of a table, A+B*=FIELD makes an array of columns of numbers")
	fs.StringVar(&c.Format, "format", "", "`KIND` of dataset: "+of("format")+" (default by DEST's name)")
	fs.StringVar(&f.resize, "resize", "", "`SIZE` in pixels: one number, or HEIGHTxWIDTH")
	fs.StringVar(&c.Fit, "fit", "", "`HOW` SIZE is met: "+of("fit")+" (default the shorter side for one number, exact for two; cover crops, pad adds black)")
	fs.StringVar(&f.crop, "crop", "", "cut out the centre after resizing: `SIZE` as above")
	fs.StringVar(&c.Filter, "filter", c.Filter, "`FILTER` of the resize, as Pillow's: "+of("filter"))
	fs.StringVar(&f.color, "color", "", "`CHANNELS` of images: "+of("color")+" (default rgb)")
	fs.StringVar(&f.layout, "layout", "", "`ORDER` of axes of images: "+of("layout")+" (default chw)")
	fs.StringVar(&f.dtype, "dtype", "", "`TYPE` of the numbers of images: "+of("dtype")+" (default uint8); uint8 keeps 0 to 255, the others store x/255, as torchvision's ToTensor")
	fs.StringVar(&f.orientation, "exif-orientation", "ignored", "`WHAT` of the turn that a camera noted: "+of("exif-orientation")+"; Pillow and torchvision ignore it, OpenCV applies it")
	fs.StringVar(&f.alpha, "alpha", "dropped", "`WHAT` of transparency: "+of("alpha")+"; dropped as Pillow's convert does, not blended; white as img2dataset, the image as it looks on it")
	fs.StringVar(&f.deep, "sixteen-bit", "high-byte", "`WHAT` of images with 16 bits a sample: "+of("sixteen-bit")+"; Pillow clips gray ones to white")
	fs.StringVar(&f.cmyk, "cmyk", "converted", "`WHAT` of CMYK images: "+of("cmyk")+"; converted as Pillow does, colour profiles aside")
	fs.BoolVar(&c.KeepEncoded, "keep-encoded", false, "keep image files, as a field of variable length, for the loader to decode; with --resize, large ones are made smaller")
	fs.IntVar(&c.Quality, "jpeg-quality", 0, "`QUALITY` of files that are made smaller, 1 to 100 (default 90)")
	fs.IntVar(&c.LargerThan, "larger-than", 0, "make only files of more than `N` pixels smaller, of the side that --fit names (default SIZE)")
	fs.StringVar(&f.normalize, "normalize", "none", "`MEAN/STD`, such as 0.5,0.5,0.5/0.25,0.25,0.25, or a name: none, imagenet, dataset (its own figures; dataset:FIELD@AXIS,... for arrays), inception, clip; "+
		"float types store (x/255-MEAN)/STD, uint8 notes it in the dataset for the loader to do")
	fs.StringVar(&c.NormalizeSplit, "normalize-split", "", "`SPLIT` that --normalize dataset is computed from, or all (default the training split, all records without splits)")
	fs.IntVar(&c.Workers, "workers", c.Workers, "`N` images at a time; the result is the same for any N")
	fs.StringVar(&f.shardSize, "shard-size", "", "`BYTES` of images in one file of a flat dataset (default 256MiB)")
	f.packing.register(fs)
	fs.StringVar(&f.onError, "on-error", "fail", "`WHAT` to do at an unreadable sample: "+of("on-error"))
	fs.IntVar(&c.MaxPixels, "max-pixels", c.MaxPixels, "refuse images of more than `N` pixels, against decompression bombs")
	fs.BoolVar(&c.Overwrite, "overwrite", false, "replace DEST if it is there")
	fs.StringVar(&f.pipeline, "pipeline", "", "`FILE` in YAML with options and transforms, or the recipe of a dataset; flags that are given count more")
	fs.BoolVar(&f.printPipeline, "print-pipeline", false, "print the options and transforms as such a file, and do nothing")
	fs.StringVar(&f.split, "split", "", "`SHARES` of the records, such as train=0.9,val=0.1; by content, so that a record stays where it is when others are added")
	fs.BoolVar(&c.Stratify, "stratify", false, "give every class those shares")
	fs.StringVar(&f.shuffle, "shuffle", "", "store the records in a random order, by `SEED`")
	fs.BoolVar(&c.Dedup, "dedup", false, "leave out samples with the same content as one before, with --append also as one in DEST, and list them; takes 40 bytes of memory each")
	fs.BoolVar(&c.Append, "append", false, "add to DEST, which must have the same fields; readers keep what they opened")
	fs.BoolVar(&c.View, "view", false, "write view.h5 into DEST, through which h5py reads the same .npy files; see inspect view --help")
	fs.BoolVar(&c.Resume, "resume", false, "go on with a run that was stopped, or begin if there is none")
	fs.StringVar(&c.Spool, "spool", "", "`FOLDER` where a dataset is built that goes to a bucket (default the system's for temporary files); needs room for some shards, or an HDF5 file")
	fs.StringVar(&f.rank, "rank", "", "make one part of the dataset, the `R`-th from 0, on this machine; auto takes it from the launcher's environment; see preprocess merge --help")
	fs.StringVar(&f.worldSize, "world-size", "", "`N` parts are made by as many runs")
	fs.StringVar(&f.maxErrors, "max-errors", "", "with --on-error skip, fail at more bad samples than `N`, or than N% of all")
	fs.StringVar(&f.memory, "memory", "", "`BYTES` of records under way (default 64MiB); decoders take what the largest image needs, once a worker")
	fs.BoolVar(&f.json, "json", false, "print the summary as JSON")
	fs.BoolVar(&f.quiet, "quiet", false, "print no progress and no summary, only errors")
	fs.BoolVar(&f.version, "version", false, "print versions and what is built in")
	cli.Group(cmd, "Source and dataset", "from", "fields", "format", "shard-size", "overwrite", "append", "split", "stratify", "shuffle", "dedup", "view")
	cli.Group(cmd, "Compression", compressNames...)
	cli.Group(cmd, "Geometry", "resize", "fit", "crop", "filter")
	cli.Group(cmd, "Pixels", "color", "layout", "dtype", "normalize", "normalize-split", "exif-orientation", "alpha", "sixteen-bit", "cmyk", "keep-encoded", "jpeg-quality", "larger-than")
	cli.Group(cmd, "Many machines, buckets", "rank", "world-size", "spool")
	cli.Group(cmd, "Run", "workers", "memory", "on-error", "max-errors", "max-pixels", "resume", "pipeline", "print-pipeline", "json", "quiet")
	for name, list := range choices {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic("preprocess: " + err.Error())
		}
	}
}

// check turns the texts into the Config, or into a list of everything that is wrong.
func (f *flags) check(args []string) error {
	if f.version {
		return nil
	}
	var p problems
	c := &f.config
	usage := &cli.UsageError{Arguments: f.arguments(args)}
	f.readPipeline(&p)
	p.choose("from", &c.From)
	p.chooseIf("color", &f.color)
	p.chooseIf("layout", &f.layout)
	p.chooseIf("dtype", &f.dtype)
	p.choose("on-error", &f.onError)
	p.choose("filter", &c.Filter)
	p.chooseIf("format", &c.Format)
	p.chooseIf("fit", &c.Fit)
	p.choose("exif-orientation", &f.orientation)
	p.choose("alpha", &f.alpha)
	p.choose("sixteen-bit", &f.deep)
	p.choose("cmyk", &f.cmyk)
	f.parse(&p)
	usage.Problems = append(p, c.problems()...)
	if usage.Arguments == "" && len(usage.Problems) == 0 {
		return nil
	}
	return usage
}

// parse reads the flags that are more than one of some words. What is wrong stays unset,
// so that the checks of the Config have nothing to say of it.
func (f *flags) parse(p *problems) {
	var err error
	c := &f.config
	c.Color, c.Layout, c.Skip = f.color, strings.ToUpper(f.layout), f.onError == "skip"
	if f.dtype != "" {
		p.add("dtype", f.dtype, c.DType.UnmarshalText([]byte(f.dtype)))
	}
	c.Rules = Rules{Orient: f.orientation == "applied", RefuseAlpha: f.alpha == "refused", Alpha: alphas[f.alpha], RefuseDeep: f.deep == "refused", RefuseCMYK: f.cmyk == "refused"}
	if c.Resize, err = parseSize(f.resize); err != nil {
		c.Fit = ""
	}
	p.add("resize", f.resize, err)
	c.Crop, err = parseSize(f.crop)
	p.add("crop", f.crop, err)
	c.Normalize, err = ParseNormalize(f.normalize)
	p.add("normalize", f.normalize, err)
	c.Split, err = ParseSplit(f.split)
	p.add("split", f.split, err)
	c.MaxErrors, err = ParseLimit(f.maxErrors)
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
	if f.memory != "" {
		c.Memory, err = cli.ParseBytes(f.memory)
		p.add("memory", f.memory, err)
	}
	if c.World, err = ParseWorld(f.rank, f.worldSize); err != nil {
		*p = append(*p, err.Error())
	}
	if f.shardSize != "" {
		c.ShardBytes, err = cli.ParseBytes(f.shardSize)
		p.add("shard-size", f.shardSize, err)
	}
}

// readPipeline takes over what a file says.
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
	if f.config.format() == formatHDF5 && !f.set.Changed("shard-size") {
		f.shardSize = "" // a recipe of a flat dataset is one of a file too
	}
	f.packing.forget(f.set, &f.config)
}

// problems are sentences about a command line.
type problems []string

func (p *problems) add(flag, value string, err error) {
	if err != nil {
		*p = append(*p, fmt.Sprintf("--%s %s: %v", flag, value, err))
	}
}

// choose checks that a flag is one of its choices, and makes it its default if not.
func (p *problems) choose(flag string, value *string) {
	if slices.Contains(choices[flag], *value) {
		return
	}
	*p = append(*p, fmt.Sprintf("--%s %s: must be one of %s", flag, *value, strings.Join(choices[flag], ", ")))
	*value = choices[flag][0]
}

// chooseIf does the same with a flag whose default depends on other things.
func (p *problems) chooseIf(flag string, value *string) {
	before := len(*p)
	if *value != "" {
		p.choose(flag, value)
	}
	if len(*p) > before {
		*value = ""
	}
}

// arguments takes SOURCE and DEST, or says what is wrong with them.
func (f *flags) arguments(args []string) string {
	if f.printPipeline && len(args) == 0 {
		return ""
	}
	if len(args) != 2 {
		return fmt.Sprintf("needs two arguments, SOURCE and DEST, not %d", len(args))
	}
	f.config.Source, f.config.Dest = args[0], args[1]
	if args[0] == "" || args[1] == "" {
		return "SOURCE and DEST must not be empty"
	}
	return ""
}

// parseSize reads "", "224" or "224x320" (height x width).
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
