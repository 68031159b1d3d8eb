package preview

import (
	"bufio"
	"fmt"
	"image"
	"image/png"
	"io"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

const long = `Draw samples in a grid as a PNG file, with class name and record number below each,
and the name of its file if the dataset has it (preprocess --names). Samples are drawn at random,
equally from all classes. Normalization is undone; other values are stretched from their minimum
(black) to their maximum (white), and the sheet says so.

Masks, boxes and keypoints are drawn over the images that they lie on, with a legend of the
classes. --pipeline draws what training will see, with its random crops and flips.`

const examples = `  inspect preview -o grid.png out/flat
  inspect preview -o grid.png --count 24 --columns 6 --seed 7 out/photos.h5
  inspect preview -o - --first out/flat | display
  inspect preview -o grid.png --pipeline train.json --count 24 out/flat
  inspect preview -o grid.png --field train/x --label-field train/y other.h5`

// flagValues holds the flags of preview.
type flagValues struct {
	Options
	out      string
	pipeline string
}

// Command returns the command inspect preview.
func Command() *cobra.Command {
	var f flagValues
	cmd := cli.Command(&cobra.Command{
		Use: "preview [flags] -o FILE.png DATASET", Short: "Draw samples and their labels", Long: long, Example: examples,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			return cli.Usage(append(datasetarg.One(cmd, args), f.problems(cmd)...)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	})
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "PNG `FILE` to write; - is stdout")
	flags.IntVar(&f.Count, "count", 64, "show at most `N` samples")
	flags.IntVar(&f.Columns, "columns", 0, "`N` pictures per row (default chosen by --count)")
	flags.Uint64Var(&f.Seed, "seed", 0, "`SEED` of the random choice")
	flags.BoolVar(&f.First, "first", false, "show the first records instead of random ones")
	flags.StringVar(&f.Field, "field", "", "`FIELD` that holds the images (default: the first that does)")
	flags.StringVar(&f.LabelField, "label-field", "", "`FIELD` that holds the labels (default: the first that does)")
	flags.StringVar(&f.pipeline, "pipeline", "", "YAML or JSON `FILE` with the transforms of training")
	cli.JSONFlag(cmd)
	cli.QuietFlag(cmd, "print errors only")
	cli.Group(cmd, "Samples", "count", "columns", "seed", "first", "field", "label-field", "pipeline")
	cli.Group(cmd, "Output", "output", "json", "quiet")
	return cmd
}

// problems returns the problems of the flags, a sentence each.
func (f *flagValues) problems(cmd *cobra.Command) (list []string) {
	if f.out == "" {
		list = append(list, "-o FILE.png says where to write the picture; -o - is stdout")
	}
	list = append(list, cli.OutputName(f.out, ".png")...)
	if f.Count < 1 {
		list = append(list, "--count must be at least 1")
	}
	if f.Columns < 0 {
		list = append(list, "--columns cannot be negative")
	}
	if f.First && cmd.Flags().Changed("seed") {
		list = append(list, "--first and --seed exclude each other")
	}
	if f.out == "-" && cli.AsJSON(cmd) {
		list = append(list, "-o - and --json would both write to stdout")
	}
	if f.out == "-" && cli.IsTerminal(cmd.OutOrStdout()) {
		list = append(list, "-o - would print a PNG file on the terminal; redirect stdout")
	}
	return list
}

// run draws the sheet and writes it.
func (f *flagValues) run(cmd *cobra.Command, path string) error {
	if err := cli.CheckOutput(f.out); err != nil {
		return err
	}
	f.Even = !cmd.Flags().Changed("count") // a number that the user gave is kept
	if f.pipeline != "" {
		var err error
		if f.Pipeline, err = readPipeline(f.pipeline); err != nil {
			return err
		}
	}
	sheet, err := Draw(cmd.Context(), path, f.Options)
	if err != nil {
		return err
	}
	if f.out == "-" {
		return encodePNG(cmd.OutOrStdout(), sheet.Picture)
	}
	if err := cli.WriteFile(f.out, func(w io.Writer) error { return encodePNG(w, sheet.Picture) }); err != nil {
		return err
	}
	if cli.Quiet(cmd) && !cli.AsJSON(cmd) {
		return nil
	}
	return cli.Print(cmd, sheet, func(w io.Writer) error { return sheet.Render(w, f.out) })
}

// Render prints what was drawn into the file out.
func (s *Sheet) Render(w io.Writer, out string) error {
	_, err := fmt.Fprintf(w, "%s: %s of %s, %d x %d pixels; %s\n", shell.Line(out),
		units.Counted(int64(len(s.Records)), "sample"), shell.Line(s.Path), s.Width, s.Height, s.Values)
	return err
}

// encodePNG writes a picture as PNG. The encoder writes small pieces, so they are buffered.
func encodePNG(w io.Writer, img image.Image) error {
	b := bufio.NewWriterSize(w, 1<<16)
	if err := png.Encode(b, img); err != nil {
		return err
	}
	return b.Flush()
}
