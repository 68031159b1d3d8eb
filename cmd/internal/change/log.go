package change

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store/edit"
)

const logLong = `List the generations of a dataset that penstock wrote, the newest first: when each was made,
what was done, and by which command or call. DATASET@3 is generation 3, and DATASET@NAME the one with
that tag, wherever a command or penstock.open takes a dataset.`

// Log returns the command log.
func Log() *cobra.Command {
	cmd := cli.Command(&cobra.Command{
		Use: "log [flags] DATASET", Short: "List the generations of a dataset", Long: logLong,
		Example: "  penstock log out/flat\n  penstock log out/flat --json | jq .[0].columns",
		PreRunE: cli.Needs("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ds, err := datasetarg.OpenGenerations(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			log, err := ds.Dataset.Log()
			if err = errors.Join(err, ds.Close()); err != nil {
				return err
			}
			return cli.Print(cmd, log, func(w io.Writer) error { return render(w, log) })
		},
	})
	cli.JSONFlag(cmd)
	return cmd
}

// render prints a generation a line. A generation whose manifest cannot be read stays in the list
// with the reason, because prune keeps all files while such a generation exists.
func render(w io.Writer, log []edit.Entry) error {
	t := cli.Table{Align: "r"}
	for _, e := range log {
		if e.Corrupt != "" {
			t.Add(fmt.Sprint(e.Generation), "", strings.Join(e.Tags, ", "), datasetarg.Done(e), "", e.Corrupt)
			continue
		}
		t.Add(fmt.Sprint(e.Generation), e.Time.Local().Format("2006-01-02 15:04:05"), strings.Join(e.Tags, ", "),
			datasetarg.Done(e),
			units.Counted(e.Records, "record"), shell.Line(by(e)))
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// by returns the command or call that made a generation; "" if the manifest does not record one.
func by(e edit.Entry) string {
	if e.Change == nil {
		return ""
	}
	return cmp.Or(e.Change.By, "")
}
