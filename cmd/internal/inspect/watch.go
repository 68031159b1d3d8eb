package inspect

import (
	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

// watch is a progress display that begins once the size of the work is known. Where there
// is no terminal it shows up for much work only.
type watch struct {
	cmd        *cobra.Command
	what, unit string
	quiet      bool
	progress   *cli.Progress
}

// muchWork makes a stage worth a line of progress where there is no terminal.
const muchWork = 1 << 20

func newWatch(cmd *cobra.Command, what, unit string, quiet bool) *watch {
	return &watch{cmd: cmd, what: what, unit: unit, quiet: quiet}
}

func (w *watch) begin(n int64) {
	out := w.cmd.ErrOrStderr()
	w.progress = cli.NewProgress(out, "inspect", w.quiet || n < muchWork && !cli.IsTerminal(out))
	w.progress.Begin(w.what, n, w.unit)
}

func (w *watch) add(n int64) { w.progress.Add(n) }

func (w *watch) end() {
	if w.progress != nil {
		w.progress.End()
	}
}
