package cli

import (
	"github.com/spf13/cobra"
)

// Stage is the progress of one step of a command. It appears when the size of the work is known. Without a
// terminal, it appears only for much work.
type Stage struct {
	cmd        *cobra.Command
	name       string // of the program
	what, unit string
	progress   *Progress
}

// muchWork makes a stage worth a line of progress where there is no terminal.
const muchWork = 1 << 20

// NewStage returns a Stage of the program name, which --quiet hides. what is a verb, unit what is counted.
func NewStage(cmd *cobra.Command, name, what, unit string) *Stage {
	return &Stage{cmd: cmd, name: name, what: what, unit: unit}
}

// Begin starts the display of n units of work, which may follow other ones.
func (s *Stage) Begin(n int64) {
	s.End()
	out := s.cmd.ErrOrStderr()
	s.progress = NewProgress(out, s.name, Quiet(s.cmd) || n < muchWork && !IsTerminal(out))
	s.progress.Begin(s.what, n, s.unit)
}

// Add counts n more units, from any goroutine. Without Begin nothing counts them.
func (s *Stage) Add(n int64) {
	if s.progress != nil {
		s.progress.Add(n)
	}
}

// End removes the display. It may be called without Begin.
func (s *Stage) End() {
	if s.progress != nil {
		s.progress.End()
	}
}
