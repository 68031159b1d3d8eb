package cli

import (
	"github.com/spf13/cobra"
)

// Stage is the progress of one step of a command whose size is known only after the step has begun.
// On a terminal it appears unless --quiet is given; elsewhere it appears only for much work, so
// that the log of a short command has its result and nothing else.
type Stage struct {
	cmd        *cobra.Command
	name       string // of the program, for lines
	what, unit string
	progress   *Progress
}

// muchWork is how many units of work make a stage worth a line where there is no terminal.
const muchWork = 1 << 20

// NewStage returns a Stage of the program name, which --quiet hides. what is a verb, and unit is
// the noun for the counted items.
func NewStage(cmd *cobra.Command, name, what, unit string) *Stage {
	return &Stage{cmd: cmd, name: name, what: what, unit: unit}
}

// Begin starts the display of n units of work. It ends an earlier display of the same Stage.
func (s *Stage) Begin(n int64) {
	s.End()
	out := s.cmd.ErrOrStderr()
	s.progress = NewProgress(out, s.name, Quiet(s.cmd) || n < muchWork && !IsTerminal(out))
	s.progress.Begin(s.what, n, s.unit)
}

// Add counts n more units, from any goroutine. Before Begin, Add does nothing.
func (s *Stage) Add(n int64) {
	if s.progress != nil {
		s.progress.Add(n)
	}
}

// End removes the display. It may be called without Begin, and more than once.
func (s *Stage) End() {
	if s.progress != nil {
		s.progress.End()
	}
}
