// Package change has the commands that change a dataset, and the commands that choose among its
// generations: column, delete, select, log, tag, restore and prune.
//
// A command checks its arguments, opens the DATASET by package datasetarg, and passes the change to
// one of two libraries. Package edit changes flat folders and Zarr, here and in buckets, by a new
// generation, which is a manifest that shares the unchanged files with the generation before.
// Package rewrite replaces an HDF5 file by a new one. makeChange chooses between the two libraries,
// so that each command states its change once for either.
//
// The command line that made a generation is stored in the generation's manifest, for penstock log.
package change

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/hdf5/rewrite"
)

const long = `Add, set, drop and rename the columns of a dataset that penstock wrote. In a folder of .npy
files or Zarr, also in a bucket, each change makes a generation and rewrites nothing: penstock log
lists generations, penstock restore goes back to one. An HDF5 file is replaced by a new one, without
the values that were dropped or replaced.`

const addLong = `Add a column with a value for each record.

VALUES is a .npy file, a dataset, a view, or a table, such as .parquet and .csv. Records are matched by
position or, with --on KEY, by the column KEY of both. "-" reads a .npy file from standard input.

With --on, records without a match need --missing. After an interrupted column from standard input,
--resume prints the first missing record, as {"first": N}, and reads on from there.`

const setLong = `Replace the values of a column by VALUES, which are as for penstock column add. With --on, records
without a match stay as they are. Class names in a table become numbers if the column has classes.

The column keeps its type. Integers are converted to it if they fit; other values of another type are
refused without --change-type.`

// Command returns the command column.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use: "column", Short: "Add, set, drop and rename columns of a dataset", Long: long, DisableFlagsInUseLine: true,
	}
	root.AddCommand(add(), set(), drop(), rename())
	return root
}

// set returns the command column set: the same command as add, for a column that exists.
func set() *cobra.Command {
	f := &putFlags{replaces: true}
	cmd := put("set", "Replace the values of a column", setLong, f,
		"  penstock column set out/flat labels labels.csv --on source_name")
	cmd.Flags().BoolVar(&f.changeType, "change-type", false, "give the column the type of VALUES")
	return cmd
}

// add returns the command column add, for a column that does not exist yet.
func add() *cobra.Command {
	return put("add", "Add a column with a value for each record", addLong, new(putFlags),
		"  penstock column add out/flat emb emb.npy\n"+
			"  penstock column add out/flat score scores.csv --on source_name --missing 0")
}

// putFlags holds the flags of column add and column set.
type putFlags struct {
	field, fields, on, missing string
	of                         string
	resume                     bool
	replaces, changeType       bool
	fills                      bool // --missing was given; its value may be an empty text
}

// put returns the command that adds or sets a column. f.replaces tells which of the two.
func put(verb, short, long string, f *putFlags, example string) *cobra.Command {
	cmd := cli.Command(&cobra.Command{
		Use: verb + " [flags] DATASET NAME VALUES", Short: short, Long: long, Example: example,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			f.fills = cmd.Flags().Changed("missing")
			return cli.Usage(f.problems(args)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args, edit.Options{By: commandLine("column "+verb, cmd, args)})
		},
	})
	flags := cmd.Flags()
	flags.StringVar(&f.field, "field", "", "`FIELD` of VALUES to take (default NAME, or the only one)")
	flags.StringVar(&f.fields, "fields", "", "types of a table's columns: `LIST` of penstock preprocess --fields")
	flags.StringVar(&f.on, "on", "",
		"match records by `KEY`, a column of both (default by position)")
	flags.StringVar(&f.missing, "missing", "", "`VALUE` of records without a match, a number or a text")
	flags.StringVar(&f.of, "of", "",
		"`GENERATION`, or its tag, whose records VALUES has (default the newest)")
	flags.BoolVar(&f.resume, "resume", false, "continue a stopped column from standard input")
	cli.QuietFlag(cmd, "print errors only")
	cli.JSONFlag(cmd)
	return cmd
}

// problems returns the problems of the arguments and flags, a sentence each.
func (f *putFlags) problems(args []string) (list []string) {
	if len(args) != 3 || args[0] == "" || args[1] == "" || args[2] == "" {
		return []string{fmt.Sprintf("needs DATASET, NAME and VALUES, and not %q", args)}
	}
	stream := args[2] == "-"
	if stream && (f.on != "" || f.field != "" || f.fields != "" || f.fills) {
		list = append(list,
			"--on, --field, --fields and --missing are for files; an array from standard input has the order of the "+
				"records")
	}
	if !stream && f.resume {
		list = append(list, "--resume is for values from standard input: values of a file are read again")
	}
	if f.of != "" && f.on != "" {
		list = append(list, "--of is a generation, for values by position: leave it out with --on")
	}
	if f.of != "" && !layout.IsName(f.of) {
		list = append(list, fmt.Sprintf("--of %s: it is the number of a generation, or its tag", f.of))
	}
	if f.on == "" && f.fills {
		list = append(list, "--missing goes with --on: by position, each record has a value")
	}
	return list
}

// commandLine returns the command with its arguments and the flags that decide its result, for the
// generation's entry in the log. Secrets in URLs are redacted, since everybody who can read the
// dataset can read the log. --resume, --quiet and --json are left out: they do not change the
// values.
func commandLine(name string, cmd *cobra.Command, args []string) string {
	words := []string{"penstock", name}
	for _, a := range args {
		words = append(words, shell.Line(remote.Redact(a)))
	}
	for _, flag := range []string{"of", "on", "missing", "field", "fields"} {
		if v := cmd.Flags().Lookup(flag); v != nil && v.Changed {
			words = append(words, "--"+flag+"="+shell.Line(v.Value.String()))
		}
	}
	return strings.Join(words, " ")
}

// drop returns the command column drop.
func drop() *cobra.Command {
	cmd := cli.Command(&cobra.Command{
		Use: "drop [flags] DATASET NAME...", Short: "Remove columns",
		Long:    "Remove columns. Their files stay for earlier generations, until penstock prune; in an HDF5 file nothing stays.",
		Example: "  penstock column drop out/flat labels",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usage(fmt.Sprintf("needs DATASET and names of columns, and not %q", args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(cmd, args[0], edit.Options{By: commandLine("column drop", cmd, args)},
				func(ds *edit.Dataset, o edit.Options) (*store.Manifest, error) { return ds.DropColumn(args[1:], o) },
				func(path string, o rewrite.Options) (*store.Manifest, error) {
					return rewrite.DropColumn(path, args[1:], o)
				})
		},
	})
	cli.JSONFlag(cmd)
	return cmd
}

// rename returns the command column rename.
func rename() *cobra.Command {
	cmd := cli.Command(&cobra.Command{
		Use: "rename [flags] DATASET NAME NEW", Short: "Give a column another name",
		Long:    "Give a column another name. In a folder, its files keep their names; manifest.json lists them.",
		Example: "  penstock column rename out/flat labels species",
		PreRunE: cli.Needs("DATASET", "NAME", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(cmd, args[0], edit.Options{By: commandLine("column rename", cmd, args)},
				func(ds *edit.Dataset, o edit.Options) (*store.Manifest, error) {
					return ds.RenameColumn(args[1], args[2], o)
				},
				func(path string, o rewrite.Options) (*store.Manifest, error) {
					return rewrite.RenameColumn(path, args[1], args[2], o)
				})
		},
	})
	cli.JSONFlag(cmd)
	return cmd
}

// change opens the dataset of an argument, makes a change by inFolder or inFile, and prints the new
// generation.
func change(cmd *cobra.Command, arg string, opts edit.Options,
	inFolder func(*edit.Dataset, edit.Options) (*store.Manifest, error),
	inFile func(path string, o rewrite.Options) (*store.Manifest, error)) error {
	ds, err := datasetarg.OpenChanging(cmd.Context(), arg)
	if err != nil {
		return err
	}
	m, err := makeChange(cmd, ds, opts,
		func(o edit.Options) (*store.Manifest, error) { return inFolder(ds.Dataset, o) }, inFile)
	return report(cmd, ds.Path, m, errors.Join(err, ds.Close()))
}

// Made is the result of a change of columns, as --json prints it.
type Made struct {
	Path       string   `json:"path"`
	Generation int      `json:"generation"`
	ID         string   `json:"id"`
	Records    int64    `json:"records"`
	Columns    []string `json:"columns"`
}

// report prints the generation with manifest m, or passes err on.
func report(cmd *cobra.Command, path string, m *store.Manifest, err error) error {
	if err != nil {
		return err
	}
	made := Made{Path: path, Generation: m.Generation, ID: m.ID, Records: m.Live()}
	for _, f := range m.Fields {
		made.Columns = append(made.Columns, f.Name)
	}
	return cli.Print(cmd, made, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: generation %d: %s\n", shell.Line(path), m.Generation,
			shell.Line(strings.Join(made.Columns, ", ")))
		return err
	})
}
