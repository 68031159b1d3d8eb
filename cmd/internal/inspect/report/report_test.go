package report

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

func compile(t testing.TB, path string, opts Options) *Report {
	t.Helper()
	if opts.Scan == 0 {
		opts.Scan = 1000
	}
	r, err := Make(context.Background(), path, opts)
	require.NoError(t, err)
	return r
}

func page(t testing.TB, r *Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.HTML(&b))
	return b.String()
}

// zoo is a dataset of 60 images of 2 classes and 2 splits: record i has a pattern of its own
// and brightness 2i; but 41 is 7 with one pixel changed, and in the other split.
func zoo(t testing.TB) string {
	schema := datasettest.SchemaOf(tensor.Uint8, tensor.CHW, "<b>cat</b>", "dog")
	names := store.NewRagged(layout.SourceNameField, tensor.Uint8)
	names.Content = tensor.SourceName
	schema.Fields = append(schema.Fields, names)
	path := filepath.Join(t.TempDir(), "zoo & co")
	w, err := flat.Create(path, schema, flat.Options{Splits: []string{"train", "val"}})
	require.NoError(t, err)
	defer w.Close()
	for i := range 60 {
		r := store.NewRecord(schema)
		r.Split = []string{"train", "val"}[i/40]
		r.Values[1][0] = byte(i % 2)
		r.Values[2] = fmt.Appendf(nil, "animals/%02d & co.jpg", i)
		k := i
		if i == 41 {
			k = 7
		}
		for at := range r.Values[0] {
			r.Values[0][at] = byte(2*k + 60*(bits.OnesCount(uint(at%64*(2*k+1)*2654435761))%3))
		}
		if i == 41 {
			r.Values[0][0]++
		}
		require.NoError(t, w.Append(r))
	}
	info := store.Info{
		Recipe:  &store.Recipe{Program: "penstock test", Transforms: []byte(`[{"op":"Resize","size":[8]}]`)},
		Skipped: []store.Skipped{{Sample: "a.jpg", Reason: "a.jpg: empty"}, {Sample: "b.jpg", Reason: "no image"}, {Sample: "c.jpg", Reason: "c.jpg: empty"}},
	}
	if _, err := w.Commit(info); err != nil {
		t.Fatal(err)
	}
	return path
}

func albumOf(r *Report, title string) []int {
	for _, a := range r.Albums {
		if a.Title == title {
			return dataset.Map(a.Thumbnails, func(s Thumbnail) int { return s.Record })
		}
	}
	return nil
}

func TestReportFindsWhatIsSpecial(t *testing.T) {
	r := compile(t, zoo(t), Options{})
	if got := albumOf(r, "Near-duplicates"); len(got) < 2 || got[0] != 7 || got[1] != 41 {
		t.Errorf("near-duplicates %v, want 7 and 41 first", got)
	}
	dark, bright := albumOf(r, "Darkest"), albumOf(r, "Brightest")
	if len(dark) != 8 || len(bright) != 8 || dark[0] > 10 || bright[0] < 50 {
		t.Errorf("darkest %v, brightest %v", dark, bright)
	}
	if got := albumOf(r, "<b>cat</b>"); len(got) != 8 || got[0]%2 != 0 {
		t.Errorf("cats %v", got)
	}
	if len(albumOf(r, "Random samples")) != 24 || len(r.Rows) != 8 {
		t.Errorf("%d albums, %d rows", len(r.Albums), len(r.Rows))
	}
	html := page(t, r)
	if p := r.Pairs[0]; p.Records != [2]int{7, 41} || p.Sources != [2]string{"animals/07 & co.jpg", "animals/41 & co.jpg"} || p.Splits != [2]string{"train", "val"} {
		t.Errorf("the first pair is %+v", p)
	}
	for _, want := range []string{`<a href="#pair-0">#7</a> train animals/07 &amp; co.jpg`, `<figure class="shot" id="pair-1">`, `<span class="file">animals/41 &amp; co.jpg</span>`} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if len(r.Reasons) != 2 || r.Reasons[0] != (Reason{"empty", 2, "a.jpg"}) {
		t.Errorf("reasons %+v", r.Reasons)
	}
	text := fmt.Sprint(r.Checks)
	for _, want := range []string{"in different splits", "checksums match", "every class has 30 records", "Skipped when the dataset was made: 3 samples"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

func TestReportPage(t *testing.T) {
	path := zoo(t)
	html := page(t, compile(t, path, Options{Workers: 1}))
	for _, want := range []string{
		"<title>zoo &amp; co: dataset report</title>", "&lt;b&gt;cat&lt;/b&gt;", `<svg viewBox`, "prefers-color-scheme: dark", `alt="Darkest: record`,
		`src="data:image/png;base64,`, "<b>Resize</b> size 8", `<meta name="viewport"`, "Histogram of images",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	for _, bad := range []string{"<b>cat", "<script", "http://", "https://", "ZgotmplZ", "url("} {
		if strings.Contains(html, bad) {
			t.Errorf("%q in the page", bad)
		}
	}
	if again := page(t, compile(t, path, Options{Workers: 3})); again != html {
		t.Error("three workers make another page than one")
	}
}

func TestReportOfEveryKind(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		opts   Options
		albums bool
		want   string
	}{
		"ragged":       {datasettest.Captions(t), Options{}, false, "Histogram of rows a record of tokens"},
		"encoded":      {datasettest.Photos(t, 4), Options{}, true, "1 image cannot be decoded, the first is record 3"},
		"one record":   {datasettest.Build(t, datasettest.SchemaOf(tensor.Float32, tensor.CHW), 1, store.Info{}, func(int, [][]byte) {}), Options{}, true, "(3, 8, 8) CHW"},
		"foreign":      {datasettest.SmallHDF5("new-chunks"), Options{Selection: dataset.Selection{Fields: []string{"tree"}}}, false, "Histogram of tree"},
		"many classes": {datasettest.Build(t, datasettest.SchemaOf(tensor.Uint8, tensor.CHW), 60, store.Info{}, func(i int, v [][]byte) { v[1][0] = byte(i) }), Options{}, true, "One of each class <small>48 of 60 classes"},
		"a split":      {datasettest.Captions(t), Options{Selection: dataset.Selection{Split: "val"}}, false, "<dt>split</dt><dd>val</dd>"},
		"not finite":   {datasettest.Build(t, datasettest.SchemaOf(tensor.Float32, tensor.CHW), 2, store.Info{}, func(_ int, v [][]byte) { copy(v[0], "\x00\x00\xc0\x7f") }), Options{}, true, "images: 2 values are not finite"},
	} {
		r := compile(t, c.path, c.opts)
		if html := page(t, r); !strings.Contains(html, c.want) || (len(r.Albums) > 0) != c.albums {
			t.Errorf("%s: %d albums, no %q, checks %v", name, len(r.Albums), c.want, r.Checks)
		}
	}
}

func TestReportOfCorruption(t *testing.T) {
	path := zoo(t)
	datasettest.Rewrite(t, filepath.Join(path, "images-00000.npy"), datasettest.Flip(layout.HeaderBytes+3))
	r := compile(t, path, Options{Scan: 10})
	if r.Failed() < 2 || !strings.Contains(fmt.Sprint(r.Checks), "corrupt in 1 place") || !strings.Contains(r.Scanned, "10 of 60") {
		t.Errorf("%v, scanned %s", r.Checks, r.Scanned)
	}
}

func TestReportCommandWritesWhole(t *testing.T) {
	out := filepath.Join(t.TempDir(), "r.html")
	var stdout, stderr strings.Builder
	if code := cli.Run(Command(), []string{"-o", out, zoo(t)}, strings.NewReader(""), &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "60 records") {
		t.Fatalf("exit code %d, %q, %q", code, &stdout, &stderr)
	}
	html, err := os.ReadFile(out)
	if err != nil || !strings.HasSuffix(string(html), "</html>\n") {
		t.Error(err)
	}
}

func TestNearDuplicatesLeaveOutFlatPictures(t *testing.T) {
	if got := nearDuplicates([]imageHash{{record: 1, ok: true}, {record: 2, ok: true}}); len(got) != 0 {
		t.Errorf("two black pictures are %v", got)
	}
}

// Pictures whose hashes differ in up to seven bits, as after a rescale and another JPEG quality,
// are found wherever these bits are; eight are too many.
func TestNearDuplicatesByHash(t *testing.T) {
	for bits, want := range map[int]int{0: 1, 3: 1, 7: 1, 8: 0} {
		a := imageHash{record: 4, ok: true, hash: 0x0123456789abcdef}
		for i := range a.grid {
			a.grid[i] = byte(i)
		}
		b := a
		b.record = 9
		for i := range bits {
			b.hash ^= 1 << (8*i + i)
		}
		if got := nearDuplicates([]imageHash{a, b}); len(got) != want {
			t.Errorf("%d bits: pairs %v, want %d", bits, got, want)
		}
	}
}
