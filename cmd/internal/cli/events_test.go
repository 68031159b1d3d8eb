package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// A program reads stages, notes and warnings from lines, one value each.
func TestEvents(t *testing.T) {
	var out bytes.Buffer
	p := NewJSONProgress(&out)
	p.Note("one\ntwo\n")
	p.Begin("writing", 100, "images")
	p.Add(60)
	p.Add(40)
	p.End()
	p.Warn("slow\x1b")
	var got []Event
	for d := json.NewDecoder(&out); d.More(); {
		var e Event
		require.NoError(t, d.Decode(&e))
		got = append(got, e)
	}
	writing := Event{Stage: "writing", Total: 100, Unit: "images"}
	end := Event{Stage: "writing", Done: 100, Total: 100, Unit: "images", Ended: true}
	if want := []Event{{Note: "one\ntwo"}, writing, end, {Warning: "slow\x1b"}}; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEventsOfProgress(t *testing.T) {
	var out bytes.Buffer
	e := newEvents(&out, "looking", -1, "samples")
	for _, done := range []int64{0, 5, 5, 7} {
		e.show(done)
	}
	want := `{"stage":"looking","done":0,"total":-1,"unit":"samples"}
{"stage":"looking","done":5,"total":-1,"unit":"samples"}
{"stage":"looking","done":7,"total":-1,"unit":"samples"}
`
	if out.String() != want {
		t.Errorf("printed %s", out.String())
	}
}
