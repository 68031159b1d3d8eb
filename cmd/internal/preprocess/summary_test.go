package preprocess

import (
	"bytes"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/store"
)

func TestSummaryForPeople(t *testing.T) {
	s := &prepare.Summary{
		Dest: "out/ds", Format: "flat", Records: 1200, Bytes: 3 << 20, Workers: 1, Decoder: "quick", Seconds: 2,
		Fields: []prepare.FieldSummary{
			{Name: "images", DType: "uint8", Shape: []int{3, 8, 8}, Layout: "CHW"},
			{Name: "labels", DType: "int64", Classes: strings.Fields("a b c d e f g")},
			{Name: "boxes", DType: "float32", Shape: []int{4}, Ragged: true},
			{Name: "caption", DType: "uint8", Ragged: true, Content: "utf-8"},
		},
		Source:       prepare.SourceSummary{Path: "photos", Samples: 1207, Bytes: 5 << 20, Ignored: 3, FirstIgnored: "README.md"},
		SkippedKinds: map[string]int64{"corrupt image": 5, "not an image": 2},
		Unit:         "images", Hints: []string{"look twice"},
	}
	for _, name := range strings.Fields("1 2 3 4 5 6 7") {
		s.Skipped = append(s.Skipped, store.Skipped{Sample: name + ".jpg", Reason: "bad"})
	}
	var b bytes.Buffer
	require.NoError(t, printText(&b, s))
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

// Copies that were left out are counted, with the list of them, and kinds of skipped samples come by their number.
func TestSummaryOfWhatWasLeftOut(t *testing.T) {
	var b strings.Builder
	kinds := map[string]int64{"a": 1, "c": 2, "b": 1}
	printLines(&b, &prepare.Summary{Dest: "ds/", Duplicates: 2, SkippedKinds: kinds, Skipped: make([]store.Skipped, 4)})
	for _, want := range []string{"2 samples left out as duplicates; ds.skipped.jsonl lists them", "2 c, 1 a, 1 b"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}
