package cli

import (
	"encoding/json"
	"io"
	"time"
)

// Event is a line of progress for programs. Keys are added but not changed. It has a stage, a note or a warning.
type Event struct {
	Stage   string `json:"stage,omitempty"` // what is done, such as "writing"
	Done    int64  `json:"done"`
	Total   int64  `json:"total"`             // -1 if that is not known
	Unit    string `json:"unit,omitempty"`    // what is counted
	Ended   bool   `json:"ended,omitempty"`   // the stage ends here
	Note    string `json:"note,omitempty"`    // lines that are worth knowing before the work is done
	Warning string `json:"warning,omitempty"` // a line that cannot wait
}

// write writes the Event in one piece. A program that has gone gets none, and the work continues.
func (e Event) write(out io.Writer) {
	line, err := json.Marshal(e)
	if err != nil {
		panic("cli: " + err.Error()) // an Event has nothing that JSON cannot have
	}
	_, _ = out.Write(append(line, '\n'))
}

// events is a display for programs: an Event when a stage begins, when more is done, and at the end.
type events struct {
	out  io.Writer
	last Event
}

func newEvents(out io.Writer, what string, total int64, unit string) *events {
	e := &events{out: out, last: Event{Stage: what, Total: total, Unit: unit}}
	e.last.write(out)
	return e
}

func (e *events) every() time.Duration { return 100 * time.Millisecond }

func (e *events) show(done int64) {
	if done != e.last.Done {
		e.last.Done = done
		e.last.write(e.out)
	}
}

func (e *events) finish(done int64, _ time.Duration) {
	e.last.Done, e.last.Ended = done, true
	e.last.write(e.out)
}
