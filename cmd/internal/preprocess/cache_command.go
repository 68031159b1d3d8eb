package preprocess

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/transforms"
)

const cacheLong = `Build the dataset of a source in the cache, where penstock.DataLoader(SOURCE) finds it.

The dataset is the one that preprocess --keep-encoded writes. With --head it is the one that preprocess
writes by these transforms, which prepare="pixels" and "auto" ask for. When files are changed, added or
removed, only these are read again, for a new generation of the dataset; archives and most tables are
read as a whole. A stopped run is continued.

` + exits

// cacheFlags holds the arguments and flags of preprocess cache.
type cacheFlags struct {
	source, dir string
	fields      string
	head        string
	transforms  *transforms.Pipeline // parsed from head; nil if image files are stored as they are
	size        string
	limit       int64
	workers     int
	progress    string
	quiet       bool
}

// cacheCommand returns the command preprocess cache.
func cacheCommand() *cobra.Command {
	c := new(cacheFlags)
	cmd := cli.Command(&cobra.Command{
		Use: "cache [flags] SOURCE", Short: "Build the dataset of a source in the cache",
		Long: cacheLong, Example: "  preprocess cache photos --cache-dir out/cache",
		PreRunE: func(cmd *cobra.Command, args []string) error { return c.check(cmd.Flags(), args) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	})
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&c.dir, "cache-dir", "", "`FOLDER` of the cache (default the user's)")
	fs.StringVar(&c.size, "cache-size", "", "most `BYTES` of the cache, such as 500GiB; least recently used datasets are removed "+
		"(default the free space)")
	fs.StringVar(&c.fields, "fields", "", "columns to read, their fields and types: `COLUMN=FIELD:TYPE,...` (default all)")
	fs.StringVar(&c.head, "head", "", "store pixels, as these `TRANSFORMS` make them of image files, in JSON such as "+
		"[{\"op\": \"Resize\", \"size\": [256, 256]}] (default the files)")
	fs.IntVar(&c.workers, "workers", 0, "`N` images read at a time (default one per core)")
	fs.StringVar(&c.progress, "progress", "auto", "progress on standard error: `FORMAT` is auto, json")
	fs.Bool("json", false, "print the summary as JSON")
	fs.BoolVarP(&c.quiet, "quiet", "q", false, "print errors only")
	return cmd
}

// check parses the flags and takes SOURCE, or returns all problems. A SOURCE that does not exist
// passes: opening it reports the error, with a proposal.
func (c *cacheFlags) check(fs *pflag.FlagSet, args []string) error {
	var p problems
	fs.VisitAll(p.choose)
	if c.size != "" {
		var err error
		if c.limit, err = units.ParseBytes(c.size); err != nil || c.limit <= 0 {
			p = append(p, fmt.Sprintf("--cache-size: %q is not a size; write it like 500GiB", c.size))
		}
	}
	if c.workers < 0 || c.workers > prepare.MaxWorkers {
		p = append(p, fmt.Sprintf("--workers %d: must be from 1 to %d", c.workers, prepare.MaxWorkers))
	}
	if c.quiet && c.progress != "auto" {
		p = append(p, "--quiet, --progress "+c.progress+": choose one")
	}
	if c.head != "" {
		var err error
		c.transforms, err = transforms.Parse([]byte(c.head))
		p.add("head", c.head, err)
	}
	if len(args) != 1 || args[0] == "" {
		return &cli.UsageError{Arguments: fmt.Sprintf("needs one argument, SOURCE, not %d", len(args)), Problems: p}
	}
	selection, err := column.ParseFields(c.fields)
	if err != nil {
		p = append(p, err.Error())
	}
	var columns []string
	for _, w := range selection {
		columns = append(columns, w.Column)
	}
	if _, missing := os.Lstat(args[0]); missing == nil && !raw.Loads(args[0], columns...) {
		p = append(p, fmt.Sprintf("SOURCE %s: it is a dataset, which is loaded as it is, and not raw samples", args[0]))
	}
	c.source = args[0]
	return cli.Usage(p...)
}

// run builds the dataset and prints the summary.
func (c *cacheFlags) run(cmd *cobra.Command) error {
	private.HideNew() // if somebody removes the cache meanwhile, its new folder is for this user alone, too
	progress := cli.ProgressOf(cmd, cmd.Name())
	s, err := c.make(cmd.Context(), progress)
	if err != nil {
		return err
	}
	return report(cmd, s)
}

// make finds the dataset of the source in the cache, or makes it. There are three cases, from cheap
// to expensive: the cache has the dataset of the source's present state; it has the dataset of an
// earlier state, to which Renew adds a generation; or the dataset is built. Only then are the
// datasets of earlier states removed: until the new one exists, a failed run must leave the old
// datasets.
func (c *cacheFlags) make(ctx context.Context, progress prepare.Progress) (*prepare.Summary, error) {
	src, err := raw.Open(ctx, c.source, raw.Options{Columns: c.fields, Warn: progress.Warn, Head: c.transforms})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	entry, err := rawcache.FindIntact(ctx, c.dir, src, progress.Warn)
	if err != nil {
		return nil, err
	}
	config := prepare.DefaultConfig()
	config.Images.Normalize = prepare.Normalize{Name: "none"}
	config.Images.Transforms = src.Transforms()
	config.Images.KeepEncoded = c.transforms == nil && slices.ContainsFunc(src.Info().Fields, source.Field.Image)
	if c.workers > 0 {
		config.Workers = c.workers
	}
	config.Source, config.Records, config.Fields = src.Mounted(), src.Declared().Records, c.fields
	if !entry.Ready {
		if _, err := entry.Renew(ctx, src, config.Workers, c.limit, progress.Note); err != nil {
			return nil, err
		}
	}
	var s *prepare.Summary
	if entry.Ready {
		config.Dest = entry.Path
		s, err = prepare.Describe(config)
	} else {
		s, err = c.build(ctx, entry, src, config, progress)
	}
	if err == nil {
		err = entry.Replace(progress.Note)
	}
	if err != nil {
		return nil, err
	}
	s.Dest, s.Source.Path = entry.Dataset(), remote.RedactURLs(c.source)
	return s, describe(s, src)
}

// build builds the dataset of an entry under a temporary name, or continues a stopped run, and then
// publishes it. Objects of a bucket are kept beside the dataset meanwhile, so that a continued run
// does not fetch them again.
func (c *cacheFlags) build(ctx context.Context, entry *rawcache.Entry, src *raw.Source, config prepare.Config,
	progress prepare.Progress) (*prepare.Summary, error) {
	if err := entry.MakeRoom(c.limit, progress.Note); err != nil {
		return nil, err
	}
	kept, err := entry.Keep(src)
	if err != nil {
		return nil, err
	}
	defer kept.Close()
	config.Dest, config.Resume = entry.Building(), true
	s, err := prepare.Run(ctx, config, progress)
	if err != nil {
		return nil, ofCache(err, c.source)
	}
	return s, entry.Publish(ctx, src)
}

// ofCache replaces the advice of package prepare to leave out an unreadable sample. A cached
// dataset has every sample: the loader numbers records by the source, so a missing sample would
// shift the numbers of later samples.
func ofCache(err error, source string) error {
	text, advised := strings.CutSuffix(err.Error(), prepare.LeaveOut)
	if !advised {
		return err
	}
	return fmt.Errorf("%s; a cached dataset has every sample: repair or remove this one, or write a dataset without it: %s",
		text, shell.Rewrite(source, "--on-error skip"))
}

// describe makes a summary count the records of the source. The dataset may have more records, from
// earlier states of the source.
func describe(s *prepare.Summary, src *raw.Source) error {
	s.Records, s.Source.Samples = int64(src.Len()), int64(src.Len())
	counts, err := src.Splits()
	s.Splits = nil
	for i, name := range src.Info().Splits {
		s.Splits = append(s.Splits, prepare.SplitSummary{Name: name, Records: counts[i]})
	}
	return err
}
