package views_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/mmapds"
)

var hostile = flag.Int("hostile", 300, "changed views, and changed manifests, that TestHostile opens")

// parts are views of one another, which TestHostile changes.
var parts = []string{
	`{"concat": [{"dataset": "a"}, {"select": {"dataset": "b", "fields": ["x"]}, "records": [3, 0]}]}`,
	`{"select": {"dataset": "a", "id": "", "split": ""}, "ranges": [[4, 6], [0, 1]], "fields": ["x"], "rename": {"x": "y"}}`,
	`{"select": {"dataset": "other.view.json"}, "where": "x in ('2', '5') or x < 1"}`,
	`{"select": {"dataset": "a"}, "records": "n.npy"}`,
	`{"zip": [{"dataset": "a"}, {"select": {"dataset": "n6"}, "rename": {"x": "y"}}]}`,
	`{"join": [{"dataset": "a"}, {"select": {"dataset": "n6"}, "rename": {"x": "y"}}], "match": {"on": "x", "right_on": "y", "how": "left", "many": true, "fill": {"y": 3}}}`,
	`{"derive": {"derive": {"dataset": "a"}, "expressions": [{"name": "y", "expression": "x * 2 + 1"}]}, "expressions": [{"name": "z", "expression": "where(y > x, sqrt(y), 0)"}]}`,
	`{"window": {"dataset": "a"}, "by": {"sizes": {"0": 3}, "stride": {"0": 2}, "dilation": {"0": 1}, "offset": {"0": 0}, "pad": {"0": "constant"}, "fill": 1, "keep": "partial", "dims": {"x": ["0"]}, "within": [[0, 4]], "outputs": [{"name": "x", "of": "x", "sizes": {"0": 2}, "lead": {"0": 1}}]}}`,
	`{"window": [{"dataset": "a"}, {"select": {"dataset": "n6"}, "rename": {"x": "y"}}], "by": {"sizes": {"0": 2}}, "origins": [0, 3]}`,
}

// words take the place of a value.
var words = []string{"null", "true", "0", "1", "-1", "2", "4611686018427387904", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "1e30", "0.5",
	`""`, `"x"`, `"a"`, `"other.view.json"`, "[]", "[[]]", "{}", `{"x": 1}`, "[null]", "[[0, 70368744177664]]", `"` + strings.Repeat("long ", 1000) + `"`, "NaN"}

// changed returns JSON some values of which are others: swapped, missing, named twice, or one in the other.
func changed(rng *rand.Rand, text []byte) []byte {
	for range 1 + rng.IntN(2) {
		var places [][2]int // where values begin and end
		var open []int
		for i := 0; i < len(text); i++ {
			from := i
			switch c := text[i]; {
			case c == '"':
				for i++; i < len(text) && text[i] != '"'; i++ {
				}
				places = append(places, [2]int{from, min(i+1, len(text))})
			case c == '{' || c == '[':
				open = append(open, i)
			case (c == '}' || c == ']') && len(open) > 0:
				places = append(places, [2]int{open[len(open)-1], i + 1})
				open = open[:len(open)-1]
			case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
				for i+1 < len(text) && strings.IndexByte(" ,:]}\n", text[i+1]) < 0 {
					i++
				}
				places = append(places, [2]int{from, i + 1})
			}
		}
		if len(places) == 0 {
			return text
		}
		one, other := places[rng.IntN(len(places))], places[rng.IntN(len(places))]
		number := func(p [2]int) bool { c := text[p[0]]; return c == '-' || c >= '0' && c <= '9' }
		if numbers := slices.DeleteFunc(slices.Clone(places), func(p [2]int) bool { return !number(p) }); len(numbers) > 0 && rng.IntN(2) == 0 {
			one = numbers[rng.IntN(len(numbers))]
		}
		value := words[rng.IntN(len(words))]
		if number(one) && rng.IntN(4) > 0 {
			value = words[2+rng.IntN(10)]
			text = bytes.Join([][]byte{text[:one[0]], []byte(value), text[one[1]:]}, nil)
			continue
		}
		switch rng.IntN(8) {
		case 0:
			value = string(text[other[0]:other[1]])
		case 1:
			value = strings.Repeat("[", 1+rng.IntN(20000))
			value += strings.Repeat("]", len(value))
		case 2:
			if text[one[0]] == '"' || text[one[0]] == '{' {
				value = string(text[one[0]:one[1]]) + ", " + string(text[other[0]:other[1]])
			}
		}
		text = bytes.Join([][]byte{text[:one[0]], []byte(value), text[one[1]:]}, nil)
	}
	if rng.IntN(8) == 0 && len(text) > 0 {
		text[rng.IntN(len(text))] ^= 1 << rng.IntN(8)
	}
	return text
}

// sealed returns a manifest with the checksum that it should have.
func sealed(text []byte) []byte {
	const last = `"crc32c": "`
	at := bytes.LastIndex(text, []byte(last))
	if at < 0 {
		return text
	}
	text = text[:at+len(last)]
	return fmt.Appendf(text, "%s\"\n}\n", layout.HexCRC(layout.CRC32C(text)))
}

// readSome reads the first records, and one from the end, of each field.
func readSome(ctx context.Context, path string) error {
	ds, err := views.Open(ctx, path, views.Options{})
	if err != nil {
		return err
	}
	defer ds.Close()
	n := ds.Source.Len()
	if n == 0 {
		return nil
	}
	if err := ds.Source.Retain(); err != nil {
		return err
	}
	defer ds.Source.Release()
	var ids loader.Identifier
	if is, ok := ds.Source.(loader.Identifier); ok {
		ids = is
		ids.ID()
	}
	order := []int{n - 1, 0, n / 2, n / 3}
	return ds.Guard(func() error {
		for _, spec := range ds.Source.Specs() {
			if spec.Ragged || spec.RecordBytes() > 1<<22 {
				continue
			}
			if err := ds.Source.Gather(ctx, spec.Name, order, make([]byte, len(order)*spec.RecordBytes())); err != nil {
				return err
			}
			if _, err := ds.Source.Slice(spec.Name, 0, min(n, 5)); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestHostile opens views and manifests with changes: each is an error or a dataset, soon, in memory that the files bound.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	dataset(t, filepath.Join(dir, "a"), "x", 0, 6)
	dataset(t, filepath.Join(dir, "b"), "x", 10, 4)
	dataset(t, filepath.Join(dir, "n6"), "x", 4, 6)
	write(t, filepath.Join(dir, "n.npy"), string(append(layout.Header(numbersSpec, 2), make([]byte, 16)...)))
	write(t, filepath.Join(dir, "other.view.json"), head+strings.TrimPrefix(parts[0], "{"))
	manifest := filepath.Join(dir, "b", "manifest.json")
	good, err := os.ReadFile(manifest)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(5, 6))
	read, most, slowest := 0, uint64(0), time.Duration(0)
	trial := func(name string, text []byte, path string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		done := make(chan error, 1)
		go func() {
			defer func() {
				if p := recover(); p != nil {
					buf := make([]byte, 4096)
					done <- fmt.Errorf("panic: %v\n%s", p, buf[:runtime.Stack(buf, false)])
				}
			}()
			done <- readSome(ctx, path)
		}()
		select {
		case err := <-done:
			if err == nil {
				read++
			} else if strings.HasPrefix(err.Error(), "panic") {
				t.Errorf("%s: %.3000s: %v", name, text, err)
			}
		case <-ctx.Done():
			t.Fatalf("%s: it does not end: %.3000s", name, text)
		}
		runtime.ReadMemStats(&after)
		slowest = max(slowest, time.Since(began))
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d bytes of memory: %.3000s", name, n, text)
		} else {
			most = max(most, n)
		}
	}
	for _, part := range parts {
		if err := readSome(t.Context(), write(t, filepath.Join(dir, "x.view.json"), head+part[1:])); err != nil {
			t.Fatalf("%s: %v", part, err)
		}
	}
	for i := range *hostile {
		text := changed(rng, []byte(head+strings.TrimPrefix(parts[i%len(parts)], "{")))
		path := filepath.Join(dir, "x.view.json")
		write(t, path, string(text))
		trial(fmt.Sprint("view ", i), text, path)
	}
	whole := read
	for i := range *hostile {
		text := sealed(changed(rng, bytes.Clone(good)))
		write(t, manifest, string(text))
		trial(fmt.Sprint("manifest ", i), text, filepath.Join(dir, "b"))
	}
	t.Logf("%d of %d views and %d of %d manifests were read; at most %d bytes of memory and %v", whole, *hostile, read-whole, *hostile, most, slowest)
	if whole == 0 || read == whole {
		t.Errorf("%d views and %d manifests were read", whole, read-whole)
	}
}

// TestLimits has small files that ask for much: they are refused before a dataset is opened.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	many := func(n int, part string) string { return `"concat": [` + strings.Repeat(part+", ", n-1) + part + `]}` }
	name := "a"
	for i := range 7 {
		file := fmt.Sprintf("%d.view.json", i)
		write(t, filepath.Join(dir, file), head+many(8, `{"dataset": "`+name+`"}`))
		name = file
	}
	write(t, filepath.Join(dir, "many.view.json"), head+many(1<<14+1, `{"dataset": "a"}`))
	write(t, filepath.Join(dir, "empty.view.json"), head+`"concat": []}`)
	write(t, filepath.Join(dir, "deep.view.json"), head+strings.Repeat(`"derive": {`, 33)+`"dataset": "a"`+strings.Repeat(`}, "expressions": [{"name": "y", "expression": "x"}]`, 33)+"}")
	nested := func(of string) string {
		return head + strings.Repeat(`"select": {`, 20) + `"dataset": "` + of + `"` + strings.Repeat("}", 21)
	}
	write(t, filepath.Join(dir, "inner.view.json"), nested("a"))
	write(t, filepath.Join(dir, "outer.view.json"), nested("inner.view.json"))
	write(t, filepath.Join(dir, "loop.view.json"), head+`"dataset": "loop.view.json"}`)
	for file, want := range map[string]string{"6": "more than 16384 datasets", "many": "more than 16384 datasets", "empty": "concat of no views",
		"deep": "nested deeper than 32", "outer": "nested deeper than 32", "loop": "more than 8 views"} {
		opened := 0
		_, err := views.Open(t.Context(), filepath.Join(dir, file+".view.json"), views.Options{
			Open: func(context.Context, string, []string, string) (views.Part, error) {
				opened++
				return nil, errors.New("opened")
			}})
		if err == nil || !strings.Contains(err.Error(), want) || opened > 0 {
			t.Errorf("%s: %d datasets were opened: %v", file, opened, err)
		}
	}
}

// leased counts the leases on a dataset.
type leased struct {
	*mmapds.Dataset
	leases *int
}

func (l leased) Retain() error {
	*l.leases++
	return l.Dataset.Retain()
}

// TestNestedDerive has a field that is computed from the one before, and one whose fields are both computed from both of the
// ones before.
func TestNestedDerive(t *testing.T) {
	dir := t.TempDir()
	dataset(t, filepath.Join(dir, "a"), "x", 0, 6)
	nested := func(depth int, expressions func(i int) string) string {
		text := `{"dataset": "a"}`
		for i := range depth {
			text = fmt.Sprintf(`{"derive": %s, "expressions": [%s]}`, text, expressions(i))
		}
		return write(t, filepath.Join(dir, "x.view.json"), head+text[1:])
	}
	one := func(i int) string { return fmt.Sprintf(`{"name": "x%d", "expression": "x%.0d + 1"}`, i+1, i) }
	leases := 0
	ds, err := views.Open(t.Context(), nested(30, one), views.Options{Open: func(_ context.Context, path string, _ []string, _ string) (views.Part, error) {
		ds, err := mmapds.Open(path)
		return leased{ds, &leases}, err
	}})
	require.NoError(t, err)
	defer ds.Close()
	if err := ds.Source.Retain(); err != nil || leases != 1 {
		t.Errorf("%d leases: %v", leases, err)
	}
	ds.Source.Release()
	out := make([]byte, 8)
	if err := ds.Source.Gather(t.Context(), "x30", []int{2}, out); err != nil || !bytes.Equal(out, []byte{0, 0, 0, 0, 0, 0, 0x40, 0x40}) { // 32
		t.Errorf("%x: %v", out, err)
	}
	two := func(i int) string {
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		if i == 0 {
			a, b = "x", "x"
		}
		text, _ := json.Marshal([]map[string]string{{"name": fmt.Sprintf("a%d", i+1), "expression": a + " + " + b}, {"name": fmt.Sprintf("b%d", i+1), "expression": a + " - " + b}})
		return string(text[1 : len(text)-1])
	}
	if _, err := views.Open(t.Context(), nested(30, two), views.Options{}); err == nil || !strings.Contains(err.Error(), "more than 4096 expressions") {
		t.Error(err)
	}
	ds, err = views.Open(t.Context(), nested(11, two), views.Options{})
	require.NoError(t, err)
	ds.Close()
}

// An error of a file that a view names, and that is no dataset, quotes nothing that is in it.
func TestNoBytesOfOthers(t *testing.T) {
	const secret = "SECRET0123456789"
	dir := t.TempDir()
	dataset(t, filepath.Join(dir, "a"), "x", 0, 6)
	for name, text := range map[string]string{
		"text": secret, "x.h5": secret, "x.npy": secret, "x.csv": secret, "x.zip": secret, "x.view.json": secret, "y.view.json": `{"penstock": "` + secret + `"}`,
		"folder/manifest.json": `{"format": "` + secret + `", "version": 1}`, "zarr/zarr.json": secret,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		write(t, path, text)
		for _, node := range []string{`"dataset": "` + path + `"}`, `"select": {"dataset": "a"}, "records": "` + path + `"}`, `"dataset": "` + filepath.Dir(path) + `"}`} {
			err := readSome(t.Context(), write(t, filepath.Join(dir, "case.view.json"), head+node))
			if err == nil || strings.Contains(err.Error(), secret[:6]) {
				t.Errorf("%s: %v", node, err)
			}
		}
	}
}
