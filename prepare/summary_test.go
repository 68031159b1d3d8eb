package prepare

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/source"
)

// Programs rely on the keys of --json.
func TestSummaryForPrograms(t *testing.T) {
	text, err := json.Marshal(mustRun(t, config(t, rawtest.Folder(t, 4))))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(text, &m))
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	want := strings.Fields("bytes classes decoder dest duplicates fields format id peak_memory records resumed seconds skipped skipped_kinds source workers")
	if !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
	if len(m["skipped"].([]any)) != 0 || m["records"].(float64) != 4 {
		t.Errorf("summary %s", text)
	}
}

func TestKinds(t *testing.T) {
	b := newRunLog(DefaultConfig())
	reasons := map[string]error{"x": fmt.Errorf("jpeg: %w", imagefile.ErrCorrupt), "y": errors.New("permission denied")}
	for i, reason := range []string{"x", "y", "x"} {
		s := &execute.Slot{Sample: source.Sample{Name: reason}, Err: reasons[reason]}
		b.enter(s)
		b.skip(s)
		if b.samples != int64(i+1) {
			t.Errorf("%d samples", b.samples)
		}
	}
	if want := map[string]int64{"corrupt image": 2, "unreadable file": 1}; !maps.Equal(b.kinds, want) {
		t.Errorf("kinds %v", b.kinds)
	}
}

// A hint reports a crop that is larger than the image it is cut from.
func TestHintOfBlackEdges(t *testing.T) {
	for _, c := range []struct {
		resize, crop []int
		want         int
	}{
		{[]int{256}, []int{224}, 0}, {[]int{256}, []int{256}, 0}, {nil, []int{9}, 0}, {[]int{256}, nil, 0},
		{[]int{256}, []int{300}, 1}, {[]int{200, 300}, []int{250}, 1}, {[]int{200, 300}, []int{200, 300}, 0}, {[]int{256}, []int{200, 300}, 1},
	} {
		d := DefaultConfig()
		d.Images.Resize, d.Images.Crop = c.resize, c.crop
		if got := d.hints(); len(got) != c.want {
			t.Errorf("resize %v, crop %v: %q", c.resize, c.crop, got)
		}
	}
}

// A run that finds everything done reports that, and for which dataset, without a time.
func TestSummaryOfWhatIsComplete(t *testing.T) {
	c := config(t, rawtest.Folder(t, 6))
	first := mustRun(t, c)
	c.Resume = true
	again := mustRun(t, c)
	if !slices.Equal(again.Classes, first.Classes) || again.Seconds != 0 || !slices.Contains(again.Hints, completeHint) {
		t.Errorf("classes %q, not %q: %+v", again.Classes, first.Classes, again)
	}
}
