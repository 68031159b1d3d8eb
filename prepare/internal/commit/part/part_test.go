package part

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzTraces makes sure that no bytes in a part's notes crash a merge.
func FuzzTraces(f *testing.F) {
	var l TraceLog
	l.Skip(Trace{Bad: &SkipReason{Text: "reason"}, Size: 7, CRC: 9})
	f.Add(l.Tail(nil), false)
	f.Add(l.Record(nil, Trace{Size: 3}), true)
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, true)
	f.Fuzz(func(t *testing.T, data []byte, record bool) {
		list, err := readTraces(data, traceEnd(record))
		if err != nil {
			return
		}
		var again TraceLog
		var out []byte
		for i, x := range list {
			if x.Bad != nil {
				again.Skip(x)
			} else if i == len(list)-1 {
				out = again.Record(nil, x)
			}
		}
		if !record {
			out = again.Tail(nil)
		}
		if back, err := readTraces(out, traceEnd(record)); err != nil || len(back) != len(list) {
			t.Errorf("%d traces come back as %d, %v", len(list), len(back), err)
		}
	})
}

func FuzzPart(f *testing.F) {
	f.Add([]byte(`{"part":{"plan":null},"crc32c":"00000000"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decode(data)
		if err == nil && (p.Plan.Size < 1 || p.From > p.To) {
			t.Errorf("accepted %+v", p)
		}
	})
}

func TestWorldRun(t *testing.T) {
	for _, c := range []struct {
		n    int64
		size int
	}{{10, 3}, {2, 5}, {0, 2}, {1 << 45, 999_999}, {7, 7}} {
		next, least, most := int64(0), int64(1<<62), int64(0)
		for r := range c.size {
			from, to := Rank{Index: r, Size: c.size}.Span(c.n)
			if from != next || to < from {
				t.Fatalf("%+v: rank %d has [%d, %d) after %d", c, r, from, to, next)
			}
			next, least, most = to, min(least, to-from), max(most, to-from)
		}
		if next != c.n || most-least > 1 {
			t.Errorf("%+v: up to %d, parts of %d to %d", c, next, least, most)
		}
	}
}

func TestParseWorld(t *testing.T) {
	env := func(name string) (string, bool) {
		v := map[string]string{"JOB_COMPLETION_INDEX": "2"}[name]
		return v, v != ""
	}
	for _, c := range []struct{ rank, size, want string }{
		{"", "", "0/0"}, {"1", "3", "1/3"}, {"auto", "4", "2/4"},
		{"auto", "", "JOB_COMPLETION_INDEX is set, but not JOB_COMPLETIONS"},
		{"3", "3", "--rank 3: must be auto or a number from 0 to 2"},
		{"-1", "3", "--rank -1"}, {"one", "3", "--rank one"},
		{"1", "", "--rank needs --world-size"}, {"", "2", "--world-size needs --rank"},
		{"0", "0", "--world-size 0"}, {"0", "1000001", "--world-size 1000001"},
	} {
		w, err := parseRank(env, c.rank, c.size)
		got := fmt.Sprintf("%d/%d", w.Index, w.Size)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("--rank %q --world-size %q: %s, want %s", c.rank, c.size, got, c.want)
		}
	}
	if _, err := parseRank(func(string) (string, bool) { return "", false }, "auto", ""); err == nil || !strings.Contains(err.Error(), "give numbers") {
		t.Errorf("no launcher: %v", err)
	}
}
