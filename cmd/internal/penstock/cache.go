package penstock

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

func init() { own = append(own, cacheCommand) }

const cacheLong = `List, check, pin and remove the cached datasets that were built from raw samples.

penstock.DataLoader(SOURCE, prepare="auto") and penstock preprocess cache SOURCE create them. They
store files, or pixels if a pipeline begins with a fixed Resize and all pixels take at most half of
the memory. With a limit (--cache-size, cache_size), the least recently used datasets are removed to
make room, but not those that are pinned or in use.`

// cacheFlags holds the flags of the subcommands of cache. --cache-dir belongs to all subcommands,
// --all to remove.
type cacheFlags struct {
	dir string
	all bool
}

// cacheCommand returns the command cache with its subcommands.
func cacheCommand() *cobra.Command {
	f := new(cacheFlags)
	root := &cobra.Command{
		Use: "cache", Short: "List, check, pin and remove datasets of raw samples", Long: cacheLong, DisableFlagsInUseLine: true,
	}
	root.PersistentFlags().StringVar(&f.dir, "cache-dir", "", "`FOLDER` of the cache (default the user's)")
	list := cli.Command(&cobra.Command{
		Use: "list [flags]", Short: "List datasets, their sources and sizes",
		PreRunE: func(_ *cobra.Command, args []string) error { return noCaches(args) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.list(cmd) },
	})
	cli.JSONFlag(list)
	check := cli.Command(&cobra.Command{
		Use: "verify [flags] [NAME...]", Short: "Compare every record with its checksum",
		RunE: func(cmd *cobra.Command, args []string) error { return f.verify(cmd, args) },
	})
	remove := cli.Command(&cobra.Command{
		Use: "remove [flags] NAME...", Short: "Remove datasets",
		Example: "  penstock cache remove --all --cache-dir out/cache",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if f.all == (len(args) > 0) {
				return cli.Usage("give the names of datasets, or --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.remove(cmd.OutOrStdout(), args) },
	})
	pin := marking("pin", "Keep datasets when others are removed to make room, or when their source changes", f,
		(*rawcache.Entry).Pin)
	unpin := marking("unpin", "Let datasets be removed again", f, (*rawcache.Entry).Unpin)
	remove.Flags().BoolVar(&f.all, "all", false, "remove all datasets")
	root.AddCommand(list, check, remove, pin, unpin)
	return root
}

// marking returns the command pin or unpin, which calls mark for each named dataset. The message is
// name with "ned" appended.
func marking(name, short string, f *cacheFlags, mark func(*rawcache.Entry) error) *cobra.Command {
	return cli.Command(&cobra.Command{
		Use: name + " [flags] NAME...", Short: short,
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage("give the names of datasets; penstock cache list has them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			entries, err := f.chosen(args)
			for _, e := range entries {
				if failed := mark(&e); failed != nil {
					err = errors.Join(err, failed)
				} else {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %sned\n", shell.Line(e.Name), name)
				}
			}
			return err
		},
	})
}

// noCaches returns the usage error of arguments for a command that takes none.
func noCaches(args []string) error {
	if len(args) > 0 {
		return cli.Usage(fmt.Sprintf("it takes no arguments, not %q", args))
	}
	return nil
}

// chosen returns the entries of the cache with these names, all entries if there are no names. A
// name is an entry's name or path, or the source of entries: one source may have several, for
// several pipelines.
func (f *cacheFlags) chosen(names []string) ([]rawcache.Entry, error) {
	all, err := rawcache.List(f.dir)
	if err != nil || len(names) == 0 {
		return all, err
	}
	var some []rawcache.Entry
	for _, name := range names {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		found := false
		for _, e := range all {
			if e.Name == name || e.Source == name || e.Path == path || e.Source == path {
				some, found = append(some, e), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: there is no such dataset in the cache; penstock cache list names them", name)
		}
	}
	return some, nil
}

// list prints the entries, in lines of 80 columns besides names and paths, or as JSON. A nil list is printed as [], not as null.
func (f *cacheFlags) list(cmd *cobra.Command) error {
	all, err := f.chosen(nil)
	if err != nil {
		return err
	}
	if all == nil {
		all = []rawcache.Entry{}
	}
	return cli.Print(cmd, all, func(w io.Writer) error {
		for _, e := range all {
			state := "complete"
			switch {
			case e.Corrupt:
				state = "corrupt"
			case !e.Ready:
				state = "being made, or stopped"
			}
			if e.Pinned {
				state += ", pinned"
			}
			used := "never"
			if !e.Used.IsZero() {
				used = e.Used.Format("2006-01-02 15:04")
			}
			stored := "files"
			if e.Transforms != nil {
				stored = "pixels"
			}
			size, fields := units.Bytes(e.Bytes), ""
			if m, err := store.ReadManifest(e.Path); err == nil {
				var names []string
				for _, f := range m.Fields {
					if f.Name != layout.SourceNameField {
						names = append(names, f.Name)
					}
				}
				size = units.Counted(m.Live(), "record") + ", " + size
				fields = "  fields: " + cli.Shorten(shell.Line(strings.Join(names, ", ")), 70) + "\n"
			}
			_, err := fmt.Fprintf(w, "%s\n  %s\n%s  %s, %s, %s, used %s\n", shell.Line(e.Name),
				shell.Line(source.WithRecords(e.Source, e.Records)), fields, size, stored, state, used)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// verify compares every record of the named datasets, or of all datasets, with its checksum.
// Entries that are being built are passed over. All corrupt datasets are reported, not only the
// first.
func (f *cacheFlags) verify(cmd *cobra.Command, names []string) error {
	entries, err := f.chosen(names)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !e.Ready && !e.Corrupt {
			continue
		}
		d, err := store.Open(e.Path, store.OpenOptions{})
		if err != nil {
			errs = append(errs, fmt.Errorf("%w; remove it: penstock cache remove %s", err, shell.Line(e.Name)))
			continue
		}
		found, err := verify.Dataset(cmd.Context(), d, verify.Options{})
		switch {
		case err != nil:
			errs = append(errs, err)
		case found.Corruptions > 0:
			errs = append(errs,
				fmt.Errorf("%s is corrupt; remove it: penstock cache remove %s", e.Path, shell.Line(e.Name)))
		default:
			fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n", shell.Line(e.Name))
		}
	}
	return errors.Join(errs...)
}

// remove removes the named entries, or all entries. An entry that is in use is reported, and all
// other entries are still removed.
func (f *cacheFlags) remove(w io.Writer, names []string) error {
	entries, err := f.chosen(names)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if err := e.Remove(); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(w, "removed %s, %s\n", shell.Line(e.Name), units.Bytes(e.Bytes))
	}
	return errors.Join(errs...)
}
