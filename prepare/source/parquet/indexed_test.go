package parquet

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// photo is a row as the Hugging Face Hub stores it, with other columns.
type photo struct {
	Image struct {
		Bytes []byte `parquet:"bytes"`
		Path  string `parquet:"path"`
	} `parquet:"image,optional"`
	Label int64     `parquet:"label"`
	Word  *string   `parquet:"word,optional,dict"`
	Boxes []float32 `parquet:"boxes,list"`
	Words []string  `parquet:"words,list"`
	X     float64   `parquet:"x"`
	Y     float64   `parquet:"y"`
}

func photos(rng *rand.Rand, n int) (rows []photo) {
	noise := rand.NewChaCha8([32]byte{byte(n)})
	for i := range n {
		r := photo{Label: int64(i % 7), X: float64(i), Y: -float64(i)}
		r.Image.Bytes = make([]byte, 2500+rng.IntN(1000))
		if _, err := noise.Read(r.Image.Bytes); err != nil {
			panic(err)
		}
		if word := fmt.Sprint("word", i%5); i%4 > 0 {
			r.Word = &word
		}
		for k := range rng.IntN(4) {
			r.Boxes, r.Words = append(r.Boxes, float32(k*i)), append(r.Words, strings.Repeat("w", k))
		}
		rows = append(rows, r)
	}
	return rows
}

func writePhotos(t *testing.T, dir string, files int, rows []photo, options ...parquet.WriterOption) {
	t.Helper()
	for i := range files {
		part := rows[i*len(rows)/files : (i+1)*len(rows)/files]
		require.NoError(t, parquet.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.parquet", i)), part, options...))
	}
}

func openAt(t *testing.T, path, fields string, places bool) source.Source {
	t.Helper()
	selection, err := column.ParseFields(fields)
	require.NoError(t, err)
	s, err := Open(t.Context(), rootOf(t, path), path, source.Options{Places: places, Seen: func(int64) {},
		IsImage: func([]byte) bool { return false }}, selection)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// describe returns the name, the split and the values of a sample, or the error.
func describe(s source.Sample, fields int) string {
	v := source.NewValues(fields)
	err := s.Data.Read(v)
	text := fmt.Sprintf("%s %s %v", s.Name, s.Split, err)
	for i := range fields {
		text += fmt.Sprintf(" %d %08x", len(v.Get(i)), crc32.ChecksumIEEE(v.Get(i)))
	}
	return text
}

// A row that is read by its number has the values that it has in a pass over all rows.
func TestRowsByNumber(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	rows := photos(rng, 800)
	for name, options := range map[string][]parquet.WriterOption{
		"one group":   {parquet.PageBufferSize(16 << 10)},
		"groups":      {parquet.PageBufferSize(8 << 10), parquet.MaxRowsPerRowGroup(130)},
		"compressed":  {parquet.PageBufferSize(64 << 10), parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(170)},
		"version 1":   {parquet.PageBufferSize(16 << 10), parquet.DataPageVersion(1)},
		"large pages": {parquet.PageBufferSize(3 << 20)},
	} {
		for _, fields := range []string{"", "image,label", "[xy]=point,word:text,boxes"} {
			t.Run(name+" "+fields, func(t *testing.T) {
				dir := t.TempDir()
				writePhotos(t, dir, 2, rows, options...)
				var want []string
				whole := openAt(t, dir, fields, false)
				n := len(whole.Info().Fields)
				for s, err := range whole.Samples() {
					require.NoError(t, err)
					want = append(want, describe(s, n))
				}
				x, ok := openAt(t, dir, fields, true).(*indexed)
				if !ok {
					t.Fatal("rows are not read by number")
				}
				if fmt.Sprint(x.Info().Fields) != fmt.Sprint(whole.Info().Fields) || x.Info().Count != int64(len(want)) {
					t.Fatalf("%+v", x.Info())
				}
				var all sync.WaitGroup
				order := rng.Perm(len(want))
				for part := range slices.Chunk(order, 100) {
					all.Go(func() {
						for _, i := range part {
							s, err := x.Sample(int64(i))
							if err != nil {
								t.Error(err)
							} else if got := describe(s, n); got != want[i] {
								t.Errorf("row %d: %s, want %s", i, got, want[i])
							}
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// Rows of a few bytes are read in their order.
func TestSmallRowsAreNotIndexed(t *testing.T) {
	dir := t.TempDir()
	writePhotos(t, dir, 1, make([]photo, 5000))
	if _, ok := openAt(t, dir, "label", true).(*indexed); ok {
		t.Error("small rows are read one by one")
	}
}

// ranges counts the bytes that are read of a file.
type ranges struct {
	*os.File
	bytes int64
}

// ReadRange implements vfs.Ranger.
func (r *ranges) ReadRange(b []byte, off int64) error {
	r.bytes += int64(len(b))
	return source.ReadAt(r.File, b, off)
}

// A row needs the pages that it is in alone, and each is read once.
func TestRowNeedsItsPages(t *testing.T) {
	dir := t.TempDir()
	writePhotos(t, dir, 1, photos(rand.New(rand.NewPCG(3, 4)), 1500), parquet.PageBufferSize(100<<10))
	x := openAt(t, dir, "image,label", true).(*indexed)
	info, err := x.files[0].Stat()
	require.NoError(t, err)
	f, err := os.Open(filepath.Join(dir, "0.parquet"))
	require.NoError(t, err)
	defer f.Close()
	r := &ranges{File: f}
	for i := range x.groups {
		for k := range x.groups[i].columns {
			x.groups[i].columns[k].file = r
		}
	}
	for range 2 {
		if _, err := x.value(1234, 0); err != nil || r.bytes > pieceBytes {
			t.Errorf("%d bytes: %v", r.bytes, err)
		}
	}
	for i := range x.info.Count {
		if _, err := x.value(i, 0); err != nil {
			t.Fatal(err)
		}
	}
	if r.bytes > info.Size() {
		t.Errorf("%d bytes of a file of %d", r.bytes, info.Size())
	}
}

// An index of pages that cannot be that of the file is not used, and one that leads to other rows is an error.
func TestWrongPageIndex(t *testing.T) {
	page := func(at int64, size int32, first int64) format.PageLocation {
		return format.PageLocation{Offset: at, CompressedPageSize: size, FirstRowIndex: first}
	}
	for name, pages := range map[string][]format.PageLocation{
		"a gap":           {page(4, 10, 0), page(15, 10, 5)},
		"an overlap":      {page(4, 10, 0), page(13, 10, 5)},
		"rows backwards":  {page(4, 10, 5), page(14, 10, 0)},
		"rows twice":      {page(4, 10, 0), page(14, 10, 0)},
		"rows after all":  {page(4, 10, 0), page(14, 10, 20)},
		"a later begin":   {page(4, 10, 1), page(14, 10, 5)},
		"an empty page":   {page(4, 0, 0), page(4, 10, 5)},
		"a negative size": {page(4, -1, 0), page(3, 10, 5)},
		"negative rows":   {page(4, 10, -3), page(14, 10, 5)},
	} {
		if list := pagePieces(pages, 10); list != nil {
			t.Errorf("%s: %d pieces", name, len(list))
		}
	}
	dir := t.TempDir()
	writePhotos(t, dir, 1, photos(rand.New(rand.NewPCG(5, 6)), 1500), parquet.PageBufferSize(100<<10))
	x := openAt(t, dir, "image", true).(*indexed)
	list := x.groups[0].columns[0].pieces
	if len(list) < 3 {
		t.Fatalf("%d pieces", len(list))
	}
	list[0].end--
	list[1].first--
	for _, row := range []int64{0, list[1].first + 1} {
		if v, err := x.value(row, 0); err == nil || !strings.Contains(err.Error(), "rows where there should be") {
			t.Errorf("row %d: %d bytes, %v", row, len(v), err)
		}
	}
}

// A read that failed is tried again by the next one, and a file that was cut is an error.
func TestRowsOfCutFile(t *testing.T) {
	dir := t.TempDir()
	writePhotos(t, dir, 1, photos(rand.New(rand.NewPCG(7, 8)), 600), parquet.PageBufferSize(100<<10))
	path := filepath.Join(dir, "0.parquet")
	x := openAt(t, dir, "image", true).(*indexed)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 1000))
	if _, err := x.value(500, 0); err == nil {
		t.Error("a row of a file that was cut")
	}
	require.NoError(t, os.WriteFile(path, data, 0o666))
	got, err := x.value(500, 0)
	if err != nil || !bytes.Contains(data, got) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	s, err := Open(ctx, rootOf(t, dir), dir, source.Options{Places: true, Seen: func(int64) {}}, nil)
	require.NoError(t, err)
	defer s.Close()
	cancel(os.ErrDeadlineExceeded)
	sample, err := s.(*indexed).Sample(3)
	require.NoError(t, err)
	if err := sample.Data.Read(source.NewValues(len(s.Info().Fields))); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("after the end of the context: %v", err)
	}
}

// rootOf opens the files of the source at path.
func rootOf(t testing.TB, path string) *vfs.Root {
	t.Helper()
	root, err := source.OpenRoot(path, source.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}
