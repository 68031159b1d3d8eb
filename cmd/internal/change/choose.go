package change

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store/edit"
)

const tagLong = `Give a generation a name: DATASET@NAME opens it, and prune keeps it. DATASET alone is the newest
generation, DATASET@3 the third. A tag is never moved; --remove removes one.`

// Tag returns the command tag.
func Tag() *cobra.Command {
	var remove bool
	cmd := cli.Command(&cobra.Command{
		Use: "tag [flags] DATASET NAME", Short: "Give a generation of a dataset a name", Long: tagLong,
		Example: "  penstock tag out/flat baseline\n  penstock tag out/flat@1 first",
		PreRunE: cli.Needs("DATASET", "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ds, err := datasetarg.OpenWritable(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if remove {
				return errors.Join(ds.Dataset.Untag(args[1]), ds.Close())
			}
			m, err := ds.Manifest()
			if err == nil {
				err = ds.Dataset.Tag(args[1], m.Generation)
			}
			return errors.Join(err, ds.Close())
		},
	})
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the tag; its generation stays until it is pruned")
	return cmd
}

const restoreLong = `Make the content of an earlier generation the newest one. Nothing is copied, and the
generations between them stay in the log.

With --deleted, restore brings deleted records back: all of them, those for which --where holds, or
those that --records lists, by their numbers in the earlier generation --of. DATASET is then written
without a generation.`

// Restore returns the command restore.
func Restore() *cobra.Command {
	var deleted bool
	f := new(choiceFlags)
	cmd := cli.Command(&cobra.Command{
		Use: "restore [flags] DATASET@GENERATION", Short: "Make an earlier generation of a dataset the newest",
		Long:    restoreLong,
		Example: "  penstock restore out/flat@1",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if err := cli.CheckArguments(args, "DATASET@GENERATION"); err != nil {
				return err
			}
			named := namesGeneration(args[0])
			switch {
			case *f != (choiceFlags{}) && !deleted:
				return cli.Usage("--where and --records choose among deleted records: give --deleted, too")
			case f.records != "" && f.of == "":
				return cli.Usage("--records needs --of, the generation that the numbers are of: the newest has no deleted records")
			case f.records != "" || f.of != "":
				return cli.Usage(f.problems()...)
			case !deleted && !named:
				return cli.Usage(noGeneration(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if deleted {
				return restoreRecords(cmd, args[0], f)
			}
			ds, err := datasetarg.OpenWritable(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if ds.Named == "" {
				return errors.Join(cli.Usage(noGeneration(args[0])), ds.Close())
			}
			m, err := ds.Dataset.Restore(ds.Named, edit.Options{By: "penstock restore " + remote.Redact(args[0])})
			if err = errors.Join(err, ds.Close()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: generation %d\n", shell.Line(ds.Path), m.Generation)
			return err
		},
	})
	cmd.Flags().BoolVar(&deleted, "deleted", false, "restore deleted records of DATASET")
	cmd.Flags().StringVar(&f.where, "where", "", "`CONDITION` that deleted records have to meet (default all)")
	cmd.Flags().StringVar(&f.records, "records", "",
		"`NUMBERS` of deleted records in --of, such as 3,7,10-20, or a file of them; - is standard input")
	cmd.Flags().StringVar(&f.of, "of", "", "`GENERATION`, or its tag, that --records counts in")
	return cmd
}

// noGeneration returns the usage error of a restore whose argument has no generation.
func noGeneration(arg string) string {
	return fmt.Sprintf("%s names no generation; write DATASET@3, or DATASET@ and a tag; --deleted takes deleted records "+
		"back", remote.Redact(arg))
}

// namesGeneration reports whether an argument may name a generation. For a URL the answer is only a
// guess, because "@" may also be part of the key: only the store knows, and run asks it later.
// Without the guess, the commonest mistake (no generation) would cost a connection before it is
// reported.
func namesGeneration(arg string) bool {
	if !remote.IsURL(arg) {
		_, _, named := layout.SplitGeneration(arg)
		return named
	}
	u, err := remote.ParseURL(arg)
	return err == nil && strings.Contains(path.Base(u.Key), "@")
}

const pruneLong = `Remove generations, and the files that no kept generation lists. The newest
generation stays, and those with tags, those that --last and --within keep, and those that a process
of this machine has open. Processes on other machines are not seen: choose --within so that it
covers their runs. Look at --dry-run first: what was removed cannot be restored.

Deleted records are erased once no other generation is kept: their columns are written again, which
needs room for the largest one, and the condition of the delete leaves the log. The dataset has
another id then. An HDF5 file has one generation, and nothing to prune.`

// bucketWithin is the default of --within in a bucket. A store does not tell which generations
// processes on other machines have open, or which files belong to a change that is still being
// written: a prune without a period of grace would remove both.
const bucketWithin = 24 * time.Hour

// Prune returns the command prune.
func Prune() *cobra.Command {
	var f edit.PruneOptions
	cmd := cli.Command(&cobra.Command{
		Use: "prune [flags] DATASET", Short: "Remove earlier generations of a dataset, and their files",
		Long:    pruneLong,
		Example: "  penstock prune --dry-run out/flat\n  penstock prune --within 168h out/flat",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if err := cli.CheckArguments(args, "DATASET"); err != nil {
				return err
			}
			if f.Last < 0 || f.Within < 0 {
				return cli.Usage("--last and --within cannot be negative")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ds, err := datasetarg.OpenChanging(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if ds.Dataset.InBucket() && !cmd.Flags().Changed("within") {
				f.Within = bucketWithin
			}
			f.By = "penstock prune " + remote.Redact(args[0])
			p, err := ds.Dataset.Prune(f)
			if err = errors.Join(err, ds.Close()); err != nil {
				return err
			}
			return cli.Print(cmd, p, func(w io.Writer) error { return renderPruned(w, p, f.DryRun) })
		},
	})
	flags := cmd.Flags()
	flags.BoolVar(&f.DryRun, "dry-run", false, "remove nothing, and print what would be removed")
	flags.IntVar(&f.Last, "last", 0, "keep the newest `N` generations (default the newest one)")
	flags.DurationVar(&f.Within, "within", 0,
		"keep those that were the newest within `TIME`, such as 36h (in a bucket 24h by default)")
	cli.JSONFlag(cmd)
	return cmd
}

// renderPruned prints what prune removed, or would remove if dry is set.
func renderPruned(w io.Writer, p *edit.Pruned, dry bool) error {
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	text := fmt.Sprintf("%s %s (%s) and %s of %s\n", verb, units.Counted(int64(len(p.Generations)), "generation"),
		numbers(p.Generations), units.Counted(p.Files, "file"), units.Bytes(p.Bytes))
	if len(p.Generations) == 0 {
		text = fmt.Sprintf("%s no generation and %s of %s\n", verb, units.Counted(p.Files, "file"),
			units.Bytes(p.Bytes))
	}
	if p.Erased > 0 {
		text += fmt.Sprintf("%s the values of %s\n", map[bool]string{false: "erased", true: "would erase"}[dry],
			units.Counted(p.Erased, "deleted record"))
	}
	if p.Postponed > 0 {
		text += fmt.Sprintf("the values of %s are in earlier generations, which are kept for now; prune again later\n",
			units.Counted(p.Postponed, "deleted record"))
	}
	if len(p.InUse) > 0 {
		text += fmt.Sprintf("kept, as they are in use: %s\n", numbers(p.InUse))
	}
	if len(p.Corrupt) > 0 {
		text += fmt.Sprintf("nothing is removed while generations are kept that cannot be read, as their files are not "+
			"known: %s\n",
			numbers(p.Corrupt))
	}
	_, err := io.WriteString(w, text)
	return err
}

// numbers returns the numbers of generations for a line of text, separated by commas.
func numbers(list []int) string {
	var words []string
	for _, n := range list {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, ", ")
}
