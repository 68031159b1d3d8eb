package cli

import (
	"encoding/json"
	"io"
	"time"
)

// Event is a line of progress in JSON, for programs. An Event is about a stage, or has a note, or a
// warning. Keys may be added in later versions, and are never renamed or removed.
type Event struct {
	Stage   string `json:"stage,omitempty"` // what is done, such as "writing"
	Done    int64  `json:"done"`
	Total   int64  `json:"total"`             // -1 if unknown
	Unit    string `json:"unit,omitempty"`    // such as "images"
	Ended   bool   `json:"ended,omitempty"`   // the stage ends here
	Note    string `json:"note,omitempty"`    // lines that are worth knowing before the work ends
	Warning string `json:"warning,omitempty"` // a line that cannot wait
}

// write writes the Event and its line break by one call of Write, so that events of several
// goroutines do not mix. If the reading program has gone, the event is lost and the work continues.
func (e Event) write(out io.Writer) {
	line, err := json.Marshal(e)
	if err != nil {
		panic("cli: " + err.Error()) // an Event has strings, integers and bools only, which JSON can always represent
	}
	_, _ = out.Write(append(line, '\n'))
}

// events is the display for programs: an Event when a stage begins, when more has been done, and
// when the stage ends.
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

// show writes an Event if the number of done items has changed since the last Event.
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
