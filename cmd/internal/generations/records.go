package generations

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader/filter"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
)

const deleteLong = `Delete the records for which a condition holds, without rewriting a file.
Readers, loaders and commands see the remaining records, numbered from 0, as a new generation. The
values stay in the files, for earlier generations and for penstock restore --deleted; penstock
preprocess DATASET DEST writes a copy without them. Conditions compare fields with numbers, strings
and the names of classes: see docs/views.md. DATASET is one that penstock wrote: a folder of .npy
files, also in a bucket, an HDF5 file or Zarr.`

// Delete returns the command delete.
func Delete() *cobra.Command {
	return choosing("delete", "Delete records of a dataset, by a condition", deleteLong,
		"  penstock delete out/flat --where \"labels = 'circle'\"", chosen)
}

const selectLong = `Keep the records for which a condition holds, and delete the others: see
penstock delete.`

// Select returns the command select.
func Select() *cobra.Command {
	return choosing("select", "Keep some records of a dataset, by a condition", selectLong,
		"  penstock select out/flat --where \"labels in ('circle', 'square')\"", others)
}

// choosing returns a command that deletes the records that of chooses.
func choosing(verb, short, long, example string, of chooser) *cobra.Command {
	var where string
	var asJSON bool
	cmd := cli.Command(&cobra.Command{
		Use: verb + " [flags] DATASET --where CONDITION", Short: short, Long: long, Example: example,
		PreRunE: func(_ *cobra.Command, args []string) error {
			if err := arguments(args, "DATASET"); err != nil {
				return err
			}
			if where == "" {
				return cli.Usage("needs --where, the condition that chooses records")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ds, err := datasetarg.OpenChanging(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			records, err := choose(cmd.Context(), ds, where, of, datasetarg.Live)
			if err != nil {
				return errors.Join(err, ds.Close())
			}
			by := commandOf("penstock "+verb, ds.Path, where)
			m, err := ds.Dataset.Delete(records, edit.Options{By: by})
			return report(cmd, ds.Path, m, asJSON, errors.Join(err, ds.Close()))
		},
	})
	cmd.Flags().StringVar(&where, "where", "", "`CONDITION` that chooses records, as of penstock inspect filter")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// chooser marks stored records of a dataset; set is those for which the condition holds.
type chooser func(ds *mmapds.Dataset, set *filter.Set) edit.Chosen

// chosen marks the records of set.
func chosen(ds *mmapds.Dataset, set *filter.Set) edit.Chosen {
	m := ds.Manifest()
	out := edit.Chosen{Generation: m.Generation, Words: make([]uint64, (m.Records+63)/64)}
	for i := range set.All() {
		place := ds.Stored(i)
		out.Words[place/64] |= 1 << (place % 64)
	}
	return out
}

// others marks the records that are not in set.
func others(ds *mmapds.Dataset, set *filter.Set) edit.Chosen {
	words := make([]uint64, len(set.Words()))
	for k, w := range set.Words() {
		words[k] = ^w
	}
	if n := set.Len() % 64; n > 0 {
		words[len(words)-1] &= 1<<n - 1
	}
	return chosen(ds, filter.NewSet(set.Len(), words))
}

// commandOf returns the line with a condition that a generation was made by, as the log shows it.
func commandOf(command, path, where string) string {
	word, ok := shell.Quote(where)
	line := shell.Command(command, path)
	if !ok || line == "" {
		return ""
	}
	return line + " --where " + word
}

// choose finds the records of the newest generation for which a condition holds.
func choose(ctx context.Context, of *datasetarg.Generations, where string, mark chooser, which datasetarg.Which) (
	c edit.Chosen, err error) {
	parsed, err := filter.Parse(where)
	if err != nil {
		return c, err
	}
	ds, end, err := of.Records(0, nil, which)
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
	c = mark(ds, set)
	c.Where = where
	return c, nil
}

// restoreRecords takes deleted records back: those for which a condition holds, or all.
func restoreRecords(cmd *cobra.Command, arg, where string) error {
	ds, err := datasetarg.OpenChanging(cmd.Context(), arg)
	if err != nil {
		return err
	}
	m, err := undelete(cmd.Context(), ds, where)
	if err = errors.Join(err, ds.Close()); err != nil {
		return err
	}
	return changed(ds.Path, m).render(cmd.OutOrStdout())
}

func undelete(ctx context.Context, ds *datasetarg.Generations, where string) (*store.Manifest, error) {
	var records edit.Chosen
	var err error
	by := shell.Command("penstock restore --deleted", ds.Path)
	if where != "" {
		by = commandOf("penstock restore --deleted", ds.Path, where)
		records, err = choose(ctx, ds, where, chosen, datasetarg.All)
	} else {
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

// Changed is the result of a change of records.
type Changed struct {
	Path       string `json:"path"`
	Generation int    `json:"generation"`
	ID         string `json:"id"`
	Changed    int64  `json:"changed"` // records that were deleted, or restored
	Records    int64  `json:"records"` // without deleted ones
	Deleted    int64  `json:"deleted"` // all of them

	operation string
}

func report(cmd *cobra.Command, path string, m *store.Manifest, asJSON bool, err error) error {
	if err != nil {
		return err
	}
	c := changed(path, m)
	return cli.Print(cmd.OutOrStdout(), asJSON, c, c.render)
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
	_, err := fmt.Fprintf(w, "%s: generation %d: %s %s, %s left\n", c.Path, c.Generation, verb,
		units.Counted(c.Changed, "record"), units.Count(c.Records))
	return err
}
