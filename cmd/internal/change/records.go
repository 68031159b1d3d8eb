package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/hdf5/rewrite"
)

const deleteLong = `Delete the records for which a condition holds, or that --records lists. Readers, loaders
and commands see the remaining records, numbered from 0. docs/views.md has the language of
conditions. DATASET is one that penstock wrote: a folder of .npy files or Zarr, also in a bucket, or
an HDF5 file.

In a folder, the remaining records are a new generation; the values stay in the files, for earlier
generations and for penstock restore --deleted, until penstock prune. An HDF5 file is replaced by a
new one, in which nothing of the deleted records is left.`

// Delete returns the command delete.
func Delete() *cobra.Command {
	return choosing("delete", "Delete records of a dataset", deleteLong,
		"  penstock delete out/flat --where \"labels = 'circle'\"\n  penstock delete out/flat --records 3,7,10-20",
		asChosen)
}

const selectLong = `Keep the records for which a condition holds, or that --records lists, and delete
the others: see penstock delete.`

// Select returns the command select.
func Select() *cobra.Command {
	return choosing("select", "Keep some records of a dataset", selectLong,
		"  penstock select out/flat --where \"labels in ('circle', 'square')\"", others)
}

// choiceFlags holds the flags that choose records: of delete, select and restore.
type choiceFlags struct {
	where, records string
	of             string
}

// leaving returns the records to delete, given the chosen ones: the chosen ones for delete, all
// others for select.
type leaving func(ds *datasetarg.Generations, c edit.Chosen) (edit.Chosen, error)

// choosing returns the command delete or select. which turns the chosen records into the records to
// delete.
func choosing(verb, short, long, example string, which leaving) *cobra.Command {
	f := new(choiceFlags)
	cmd := cli.Command(&cobra.Command{
		Use: verb + " [flags] DATASET", Short: short, Long: long, Example: example,
		PreRunE: func(_ *cobra.Command, args []string) error {
			if err := cli.CheckArguments(args, "DATASET"); err != nil {
				return err
			}
			return cli.Usage(f.problems()...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ds, err := datasetarg.OpenChanging(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			records, err := f.choose(cmd, ds)
			if err == nil {
				records, err = which(ds, records)
			}
			if err != nil {
				return errors.Join(err, ds.Close())
			}
			m, err := makeChange(cmd, ds, edit.Options{By: f.commandOf("penstock "+verb, ds.Path)},
				func(o edit.Options) (*store.Manifest, error) { return ds.Dataset.Delete(records, o) },
				func(path string, o rewrite.Options) (*store.Manifest, error) { return rewrite.Delete(path, records, o) })
			return reportChange(cmd, ds.Path, m, errors.Join(err, ds.Close()))
		},
	})
	cmd.Flags().StringVar(&f.where, "where", "", "`CONDITION` that chooses records, as in penstock inspect filter")
	cmd.Flags().StringVar(&f.records, "records", "",
		"`NUMBERS` of records, such as 3,7,10-20, or a file of one a line or .npy; - is standard input")
	cmd.Flags().StringVar(&f.of, "of", "",
		"`GENERATION`, or its tag, that --records counts in (default the newest)")
	cli.JSONFlag(cmd)
	return cmd
}

// problems returns the problems of the flags, a sentence each.
func (f *choiceFlags) problems() (list []string) {
	switch {
	case f.where == "" && f.records == "":
		list = append(list, "needs --where, the condition that chooses records, or --records, their numbers")
	case f.where != "" && f.records != "":
		list = append(list, "--where and --records both choose records: give one of them")
	}
	if f.of != "" && f.records == "" {
		list = append(list, "--of is a generation, for --records: leave it out with --where")
	}
	if f.of != "" && !layout.IsName(f.of) {
		list = append(list, fmt.Sprintf("--of %s: it is the number of a generation, or its tag", f.of))
	}
	return list
}

// choose returns the records that --where or --records chooses, as places in storage.
func (f *choiceFlags) choose(cmd *cobra.Command, ds *datasetarg.Generations) (edit.Chosen, error) {
	if f.where != "" {
		return choose(cmd.Context(), ds, f.where, edit.Live)
	}
	m, err := ds.Dataset.Manifest(f.of)
	if err != nil {
		return edit.Chosen{}, err
	}
	numbers, err := recordNumbers(f.records, cmd.InOrStdin(), m.Live())
	if err != nil {
		return edit.Chosen{}, fmt.Errorf("--records %s: %w", shell.Line(f.records), err)
	}
	return ds.Dataset.Choose(m.Generation, numbers)
}

// commandOf returns the command line that makes the generation, for the log.
func (f *choiceFlags) commandOf(command, path string) string {
	if f.where != "" {
		return commandOf(command, path, "--where", f.where)
	}
	line := commandOf(command, path, "--records", f.records)
	if f.of != "" && line != "" {
		line += " --of " + shell.Line(f.of)
	}
	return line
}

// asChosen is the leaving of delete: the chosen records are deleted.
func asChosen(_ *datasetarg.Generations, c edit.Chosen) (edit.Chosen, error) { return c, nil }

// others is the leaving of select: it returns the records of the generation of c that are neither
// chosen nor deleted already. Bits beyond the last record are cleared, since the complement of the
// last word has set them.
func others(ds *datasetarg.Generations, c edit.Chosen) (edit.Chosen, error) {
	m, err := ds.Dataset.Manifest(strconv.Itoa(c.Generation))
	if err != nil {
		return c, err
	}
	deleted, err := m.Deleted.Words(m.Records)
	if err != nil {
		return c, err
	}
	for k, w := range c.Words {
		c.Words[k] = ^(w | deleted[k])
	}
	if n := m.Records % 64; n > 0 {
		c.Words[len(c.Words)-1] &= 1<<n - 1
	}
	return c, nil
}

// chosen returns a set of record numbers as a set of places. Numbers change with every delete;
// places stay, so that the set is still right if another writer deletes records before the commit.
func chosen(ds *mmapds.Dataset, set *expr.Set) edit.Chosen {
	m := ds.Manifest()
	out := edit.Chosen{Generation: m.Generation, Words: make([]uint64, (m.Records+63)/64)}
	for i := range set.All() {
		place := ds.Stored(i)
		out.Words[place/64] |= 1 << (place % 64)
	}
	return out
}

// commandOf returns a command line with one flag, for the log; "" if a word cannot be printed,
// because a shell could not be given the line.
func commandOf(command, path, flag, value string) string {
	word, ok := shell.Quote(value)
	if value == "-" {
		word = value // standard input, which Quote takes for a file
	}
	line := shell.Command(command, path)
	if !ok || line == "" {
		return ""
	}
	return line + " " + flag + " " + word
}

// choose returns the records of the newest generation for which a condition holds.
func choose(ctx context.Context, of *datasetarg.Generations, where string, which edit.Which) (c edit.Chosen,
	err error) {
	parsed, err := expr.Parse(where)
	if err != nil {
		return c, err
	}
	ds, end, err := of.Dataset.Records(0, nil, which)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if ds.Manifest() == nil {
		return c, store.NoGenerations(of.Path)
	}
	set, err := parsed.Find(ctx, ds)
	if err != nil {
		return c, err
	}
	c = chosen(ds, set)
	c.Where = where
	return c, nil
}

// restoreRecords restores deleted records: the records that --where or --records chooses, or all
// deleted records.
func restoreRecords(cmd *cobra.Command, arg string, f *choiceFlags) error {
	ds, err := datasetarg.OpenChanging(cmd.Context(), arg)
	if err != nil {
		return err
	}
	m, err := f.undelete(cmd, ds)
	if err = errors.Join(err, ds.Close()); err != nil {
		return err
	}
	return reportChange(cmd, ds.Path, m, nil)
}

// undelete finds the records to restore and restores them. The condition of --where is evaluated
// over all stored records, since the wanted ones are deleted.
func (f *choiceFlags) undelete(cmd *cobra.Command, ds *datasetarg.Generations) (*store.Manifest, error) {
	var records edit.Chosen
	var err error
	by := shell.Command("penstock restore --deleted", ds.Path)
	switch {
	case f.records != "":
		by = f.commandOf("penstock restore --deleted", ds.Path)
		records, err = f.choose(cmd, ds)
	case f.where != "":
		by = f.commandOf("penstock restore --deleted", ds.Path)
		records, err = choose(cmd.Context(), ds, f.where, edit.All)
	default:
		var m *store.Manifest
		if m, err = ds.Manifest(); err == nil {
			records.Generation = m.Generation
			records.Words, err = m.Deleted.Words(m.Records)
		}
	}
	if err != nil {
		return nil, err
	}
	return ds.Dataset.Undelete(records, edit.Options{By: by})
}

// Changed is the result of deleting or restoring records, as --json prints it.
type Changed struct {
	Path       string `json:"path"`
	Generation int    `json:"generation"`
	ID         string `json:"id"`
	Changed    int64  `json:"changed"` // records that were deleted, or restored
	Records    int64  `json:"records"` // without deleted ones
	Deleted    int64  `json:"deleted"` // all of them

	operation string
}

// reportChange prints what a change of records did, or passes err on.
func reportChange(cmd *cobra.Command, path string, m *store.Manifest, err error) error {
	if err != nil {
		return err
	}
	c := changed(path, m)
	return cli.Print(cmd, c, c.render)
}

func changed(path string, m *store.Manifest) *Changed {
	return &Changed{Path: path, Generation: m.Generation, ID: m.ID, Changed: m.Change.Records, Records: m.Live(),
		Deleted: m.Records - m.Live(), operation: m.Change.Operation}
}

func (c *Changed) render(w io.Writer) error {
	verb := "deleted"
	if c.operation != "delete" {
		verb = "restored"
	}
	_, err := fmt.Fprintf(w, "%s: generation %d: %s %s, %s left\n", shell.Line(c.Path), c.Generation, verb,
		units.Counted(c.Changed, "record"), units.Count(c.Records))
	return err
}
