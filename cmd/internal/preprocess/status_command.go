package preprocess

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare"
)

const statusLong = `Print which ranks have made their parts of DEST, and which are running, failed or missing.

Running ranks write a heartbeat to DEST.parts every 5 seconds, in a bucket every 30 seconds. A rank
without a heartbeat for two minutes has stopped: it was killed, or the clocks differ. Run it again.`

// statusCommand returns the command preprocess status.
func statusCommand() *cobra.Command {
	cmd := cli.Command(&cobra.Command{
		Use: "status [flags] DEST", Short: "Print which parts of a dataset are complete, running, failed or missing",
		Long: statusLong, Example: "  preprocess status out/flat\n  preprocess status s3://lab/ds --json",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return &cli.UsageError{Arguments: "needs the name of a dataset, DEST"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := prepare.ReadStatus(cmd.Context(), args[0], time.Now())
			if err != nil {
				return err
			}
			return cli.Print(cmd, s, func(w io.Writer) error { return printStatus(w, s, args[0]) })
		},
	})
	cli.JSONFlag(cmd)
	return cmd
}

// shown is how many ranks of a kind are listed.
const shown = 20

func printStatus(w io.Writer, s *prepare.RunStatus, dest string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d parts are complete, %d running, %d failed, %d stopped, %d missing\n",
		s.Parts, s.Complete, s.WorldSize, s.Running, s.Failed, s.Stopped, len(s.Missing))
	if s.Samples >= 0 {
		fmt.Fprintf(&b, "  samples  %s of %s", units.Count(s.Done), units.Count(s.Samples))
		if s.Rate > 0 {
			fmt.Fprintf(&b, ", %s samples/s", cli.Number(s.Rate))
		}
		if s.Left > 0 {
			fmt.Fprintf(&b, ", %s left", units.Duration(time.Duration(s.Left*float64(time.Second))))
		}
		b.WriteString("\n")
	}
	for i, r := range s.Ranks {
		if i == shown {
			fmt.Fprintf(&b, "  ... %d more, see --json\n", len(s.Ranks)-shown)
			break
		}
		fmt.Fprintf(&b, "  %-8s rank %d on %s: %s\n", r.State, r.Rank, r.Host, rankText(r))
	}
	if len(s.Missing) > 0 {
		fmt.Fprintf(&b, "  missing  %s\n", ranges(s.Missing))
	}
	if s.Complete == s.WorldSize {
		fmt.Fprintf(&b, "Join them: %s\n", shell.On("preprocess merge", dest))
	}
	_, err := io.WriteString(w, shell.Lines(b.String()))
	return err
}

func rankText(r prepare.RankStatus) string {
	switch {
	case r.State == prepare.Failed:
		return r.Error
	case r.State == prepare.Stopped:
		return fmt.Sprintf("no sign for %s; run it again", units.Duration(time.Duration(r.Silent*float64(time.Second))))
	case r.Of < 0:
		return "looking at the source"
	}
	return fmt.Sprintf("%s of %s samples, %s/s", units.Count(r.Samples), units.Count(r.Of), cli.Number(r.Rate))
}

// ranges writes ranks in short, such as "2, 5 to 7".
func ranges(ranks []int) string {
	var list []string
	for i := 0; i < len(ranks); {
		k := i
		for k+1 < len(ranks) && ranks[k+1] == ranks[k]+1 {
			k++
		}
		text := strconv.Itoa(ranks[i])
		if k > i {
			text += " to " + strconv.Itoa(ranks[k])
		}
		if list = append(list, text); len(list) == shown {
			list = append(list, "...")
			break
		}
		i = k + 1
	}
	return strings.Join(list, ", ")
}
