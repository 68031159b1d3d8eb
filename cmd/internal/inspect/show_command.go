package inspect

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/store"
)

const showLong = `Print the values of records: 7 is one record, 5:8 are three, :8 and 5: are open ranges. The
default is the first five. Arrays are shortened and summarized; encoded images are shown by
format and size. --json prints one object per record and line.

--recipe prints how the dataset was made, for preprocess --pipeline. The same recipe, source
and version give the same bytes. --manifest prints the whole manifest.`

const showExamples = `  inspect show out/flat 0 100:105
  inspect show --field labels --values 0 out/photos.h5 :1000
  inspect show --ansi --split val out/flat 3
  inspect show --json out/flat : | jq -c .fields[1].values
  preprocess --pipeline <(inspect show --recipe out/flat) photos again`

// showFlags is the command line of show.
type showFlags struct {
	ShowOptions
	recipe, manifest, json bool
}

func showCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use: "show [flags] DATASET [RECORDS...]", Short: "Print the values of records, or the recipe", Long: showLong, Example: showExamples,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		PreRunE:               func(cmd *cobra.Command, args []string) error { return cli.Usage(f.problems(cmd, args)...) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.recipe || f.manifest {
				return f.books(cmd.OutOrStdout(), args[0])
			}
			return f.records(cmd, args)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.Elements, "values", 8, "show at most `N` numbers of an array; 0 shows all")
	flags.BoolVar(&f.Pictures, "ansi", false, "draw images as coloured characters (24-bit terminals)")
	flags.BoolVar(&f.recipe, "recipe", false, "print the recipe, for preprocess --pipeline")
	flags.BoolVar(&f.manifest, "manifest", false, "print the manifest")
	flagJSON(cmd, &f.json)
	return cmd
}

func (f *showFlags) problems(cmd *cobra.Command, args []string) (list []string) {
	if len(args) == 0 || args[0] == "" {
		return []string{"no DATASET given"}
	}
	books := f.recipe || f.manifest
	for _, text := range args[1:] {
		if _, err := parseSpan(text); err != nil {
			list = append(list, err.Error())
		}
	}
	if books && (len(args) > 1 || f.Fields != nil || f.Split != "" || f.Pictures || cmd.Flags().Changed("values")) {
		list = append(list, "--recipe and --manifest are of the whole dataset: they go with no RECORDS and no flags of them")
	}
	if f.recipe && f.manifest {
		list = append(list, "--recipe and --manifest exclude each other")
	}
	if f.Elements < 0 {
		list = append(list, "--values cannot be negative")
	}
	if f.Pictures && f.json {
		list = append(list, "--ansi and --json exclude each other")
	}
	return list
}

// books prints the manifest or the recipe. Both are JSON, which YAML includes.
func (f *showFlags) books(w io.Writer, path string) error {
	m, err := manifestOf(path)
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

func printRecipe(w io.Writer, path string, m *store.Manifest) error {
	if m.Recipe == nil {
		return fmt.Errorf("%s: its manifest has no recipe", path)
	}
	return show(w, true, m.Recipe, nil)
}

func (f *showFlags) records(cmd *cobra.Command, args []string) error {
	out, first := cmd.OutOrStdout(), true
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	return Show(cmd.Context(), args[0], args[1:], f.ShowOptions, func(s *Shown) error {
		if f.json {
			return lines.Encode(s)
		}
		if !first {
			fmt.Fprintln(out)
		}
		first = false
		return s.Render(out)
	})
}
