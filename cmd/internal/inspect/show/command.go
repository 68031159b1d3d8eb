package show

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
)

const long = `Print the values of records: 7 is one record, 5:8 are three, :8 and 5: are open ranges. The
default is the first five. Arrays are shortened and summarized; encoded images are shown by
format and size. --json prints one object per record and line.`

const examples = `  inspect show out/flat 0 100:105
  inspect show --field labels --values 0 out/photos.h5 :100
  inspect show --split val out/flat 3
  inspect show --json out/flat : | jq -c .fields[1].values
  preprocess --pipeline <(inspect show --recipe out/flat) photos again`

// flagValues holds the flags of show.
type flagValues struct {
	Options
	recipe, manifest bool
}

// Command returns the command inspect show.
func Command() *cobra.Command {
	var f flagValues
	cmd := cli.Command(&cobra.Command{
		Use: "show [flags] DATASET [RECORDS...]", Short: "Print the values of records, or the recipe", Long: long,
		Example: examples,
		PreRunE: func(cmd *cobra.Command, args []string) error { return cli.Usage(f.problems(cmd, args)...) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.recipe || f.manifest {
				return f.metadata(cmd.OutOrStdout(), args[0])
			}
			return f.records(cmd, args)
		},
	})
	f.Register(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.Elements, "values", 8, "show at most `N` numbers of an array; 0 shows all")
	flags.BoolVar(&f.recipe, "recipe", false, "print the recipe, for "+shell.Penstock("preprocess --pipeline"))
	flags.BoolVar(&f.manifest, "manifest", false, "print the manifest")
	cli.JSONFlag(cmd)
	return cmd
}

// problems returns the problems of the arguments and flags, a sentence each.
func (f *flagValues) problems(cmd *cobra.Command, args []string) (list []string) {
	if len(args) == 0 || args[0] == "" {
		return []string{"no DATASET given"}
	}
	metadata := f.recipe || f.manifest
	for _, text := range args[1:] {
		if _, err := parseRange(text); err != nil {
			list = append(list, err.Error())
		}
	}
	if metadata && (len(args) > 1 || f.Fields != nil || f.Split != "" || cmd.Flags().Changed("values")) {
		list = append(list, "--recipe and --manifest are of the whole dataset: they go with no RECORDS and no flags of them")
	}
	if f.recipe && f.manifest {
		list = append(list, "--recipe and --manifest exclude each other")
	}
	if f.Elements < 0 {
		list = append(list, "--values cannot be negative")
	}
	return list
}

// metadata prints the manifest or the recipe. Both are JSON, which is also YAML, so preprocess
// --pipeline reads the recipe as it is.
func (f *flagValues) metadata(w io.Writer, path string) error {
	m, err := dataset.ReadManifest(path)
	if err != nil {
		return err
	}
	if f.manifest {
		text, err := m.Encode()
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	return printRecipe(w, path, m)
}

// printRecipe prints the recipe of a manifest.
func printRecipe(w io.Writer, path string, m *store.Manifest) error {
	if m.Recipe == nil {
		return fmt.Errorf("%s: its manifest has no recipe", path)
	}
	return cli.PrintJSON(w, m.Recipe)
}

// records prints records: as text with an empty line in between, or as a JSON object a line, which
// a program can read one by one.
func (f *flagValues) records(cmd *cobra.Command, args []string) error {
	out, first := cmd.OutOrStdout(), true
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	return Each(cmd.Context(), args[0], args[1:], f.Options, func(s *Record) error {
		if cli.AsJSON(cmd) {
			return lines.Encode(s)
		}
		if !first {
			fmt.Fprintln(out)
		}
		first = false
		return cli.Screen(out, s.Render)
	})
}
