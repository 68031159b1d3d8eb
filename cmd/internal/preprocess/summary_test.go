package preprocess

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/transforms"
)

func TestSummaryForPeople(t *testing.T) {
	s := &Summary{
		Dest: "out/ds", Format: "flat", Records: 1200, Bytes: 3 << 20, Workers: 1, Decoder: "quick", Seconds: 2,
		Fields: []FieldSummary{
			{Name: "images", DType: "uint8", Shape: []int{3, 8, 8}, Layout: "CHW"},
			{Name: "labels", DType: "int64", Classes: strings.Fields("a b c d e f g")},
			{Name: "boxes", DType: "float32", Shape: []int{4}, Ragged: true},
			{Name: "caption", DType: "uint8", Ragged: true, Content: "utf-8"},
		},
		Source:       SourceSummary{Path: "photos", Samples: 1207, Bytes: 5 << 20, Ignored: 3, firstIgnored: "README.md"},
		SkippedKinds: map[string]int64{"corrupt image": 5, "not an image": 2},
		kinds:        []string{"corrupt image", "not an image"},
		unit:         "images", hints: []string{"look twice"},
	}
	for _, name := range strings.Fields("1 2 3 4 5 6 7") {
		s.Skipped = append(s.Skipped, store.Skipped{Sample: name + ".jpg", Reason: "bad"})
	}
	var b bytes.Buffer
	if err := s.Print(&b); err != nil {
		t.Fatal(err)
	}
	want := `out/ds: 1,200 records, 3.0 MiB, flat folder
  images   uint8 (3, 8, 8)  CHW
  labels   int64 ()  7 classes: a, b, c, d, e, f, ...
  boxes    float32 (*, 4)
  caption  uint8 (*,)  text
  source   1,207 samples, 5.0 MiB from photos
  time     2.0 s, 604 images/s, 1 worker
  decoder  quick
  ignored  3 files that are not images, first: README.md
  skipped  7 of 1,207 samples: 5 corrupt image, 2 not an image
           1.jpg: bad
           2.jpg: bad
           3.jpg: bad
           4.jpg: bad
           5.jpg: bad
           and 2 more; out/ds.skipped.jsonl lists all
note: look twice
Look at it with: penstock inspect out/ds
`
	if b.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", b.String(), want)
	}
}

// Programs rely on the keys of --json.
func TestSummaryForPrograms(t *testing.T) {
	text, err := json.Marshal(mustRun(t, config(t, folder(t, 4))))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
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

// The recipe in the manifest is one that transforms reads back.
func TestRecipeIsComplete(t *testing.T) {
	c := config(t, folder(t, 4))
	mustRun(t, c)
	recipe := manifest(t, c.Dest).Recipe
	p, err := transforms.Parse(recipe.Transforms)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var stored bytes.Buffer
	if err := json.Compact(&stored, recipe.Transforms); err != nil {
		t.Fatal(err)
	}
	if stored.String() != string(again) {
		t.Errorf("stored %s, read back %s", &stored, again)
	}
	for _, key := range []string{"alpha", "color", "exif-orientation", "icc-profile", "max-pixels", "normalize", "on-error"} {
		if recipe.Options[key] == "" {
			t.Errorf("options %v have no %q", recipe.Options, key)
		}
	}
}

func TestKindNames(t *testing.T) {
	b := newRunLog(DefaultConfig())
	reasons := map[string]error{"x": fmt.Errorf("jpeg: %w", imagefile.ErrCorrupt), "y": errors.New("permission denied")}
	for i, reason := range []string{"x", "y", "x"} {
		s := &slot{sample: source.Sample{Name: reason}, bad: reasons[reason]}
		b.enter(s)
		b.skip(s)
		if b.samples != int64(i+1) {
			t.Errorf("%d samples", b.samples)
		}
	}
	if names := kindNames(b.kinds); !slices.Equal(names, []string{"corrupt image", "unreadable file"}) {
		t.Errorf("kinds %q", names)
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
		d.Resize, d.Crop = c.resize, c.crop
		if got := d.hints(); len(got) != c.want {
			t.Errorf("resize %v, crop %v: %q", c.resize, c.crop, got)
		}
	}
}

// A run that finds all done says so, and of what, without a time.
func TestSummaryOfWhatIsComplete(t *testing.T) {
	c := config(t, folder(t, 6))
	first := mustRun(t, c)
	c.Resume = true
	again := mustRun(t, c)
	var b strings.Builder
	again.print(&b)
	if !slices.Equal(again.Classes, first.Classes) || strings.Contains(b.String(), "time") || !strings.Contains(b.String(), "nothing was left to do") {
		t.Errorf("classes %q, not %q\n%s", again.Classes, first.Classes, &b)
	}
}
