package table

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// numberCells are kinds of columns, and cells that make their types others.
var numberCells = [][]string{
	{"0", "7", "-12", "999", "1024"}, {"0.5", "-3.25", "12.0625", "0.6369616873214543", "-0.016527635528529094"},
	{"16777217", "-9007199254740993", "123456789012345", "1234567890123456", "18446744073709551615"},
	{"-0", "00", "-0.0", "+5", "1e-05", "2.5E3", "1e39", "nan", "-inf", "12345678.5", "0.30000001192092896"},
	{"16777216.000000000001", "16777217.5", "8388608.5", "0.00000000000000000001", "9999999999999999999", "7."},
	{"true", "false"}, {"", "NA", "cat"},
	{`"x, y"`, `"a ""b"""`, "\"l\nm\"", "\"\r\n\n\"", `""`, `"12"`, "word", "é", "\xff", "12", "-x", "word", `5" disk`, "word", "a.png"},
}

// The last kinds of numberCells are words.
const oddWords, words = 6, 7

// writeNumbers writes a table whose columns mostly have one kind of cells, and others from some row on.
func writeNumbers(t *testing.T, rng *rand.Rand, path string) {
	columns, rows := 1+rng.IntN(4), 1+rng.IntN(120)
	names := []string{"a", "b.c", "label", "é"}[:columns]
	kinds, others, turns := make([]int, columns), make([]int, columns), make([]int, columns)
	for k := range kinds {
		kinds[k], others[k], turns[k] = []int{0, 1, 0, 1, 0, 1, oddWords, words}[rng.IntN(8)], []int{0, 1, 1, 2, 3, 4}[rng.IntN(6)], rng.IntN(2*rows)
		if rng.IntN(20) == 0 {
			others[k] = rng.IntN(len(numberCells))
		}
	}
	inJSON := strings.HasSuffix(path, "l")
	gap, lineEnds := []string{"", " "}[rng.IntN(2)], []string{"\n", "\n", "\n", "\r\n", "\n\n"}
	if rng.IntN(3) > 0 { // most tables have no blank lines
		lineEnds = lineEnds[2+rng.IntN(2):][:1]
	}
	var text strings.Builder
	if !inJSON {
		text.WriteString(strings.Join(names, ",") + "\n")
	}
	for row := range rows {
		var cells []string
		for k, name := range names {
			kind := kinds[k]
			if row >= turns[k] && rng.IntN(4) == 0 {
				kind = others[k]
			}
			cell := numberCells[kind][rng.IntN(len(numberCells[kind]))]
			if cell == `5" disk` && rng.IntN(20) > 0 {
				cell = `"disk"`
			}
			switch {
			case inJSON && cell == "":
				cell = "null"
			case inJSON && !json.Valid([]byte(cell)) && kind < oddWords:
				cell = "-1.5e3"
			case inJSON && kind == words:
				cell = strconv.Quote(strings.Trim(cell, `"`))
			case inJSON && kind == oddWords:
				cell = `"` + cell + `"`
			}
			if inJSON {
				cell = fmt.Sprintf(`"%s":%s%s`, name, gap, cell)
			}
			cells = append(cells, cell)
		}
		line := strings.Join(cells, ","+strings.Repeat(gap, len(path)%2))
		if inJSON {
			line = "{" + line + "}"
		} else if rng.IntN(200) == 0 {
			line += ",1"
		}
		text.WriteString(line + lineEnds[rng.IntN(len(lineEnds))])
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()[:text.Len()-rng.IntN(2)]), 0o666))
}

// A block of whole numbers becomes floats, but -0 does not, as a float is another number than 0.
func TestHeldMinusZero(t *testing.T) {
	defer func(n int) { blockBytes = n }(blockBytes)
	blockBytes = 64
	path := filepath.Join(t.TempDir(), "a.csv")
	text := "a\n" + strings.Repeat("1\n", 100) + "-0\n" + strings.Repeat("16777217\n", 100) + "0.5\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	src, err := OpenCSV(t.Context(), rootOf(t, path), path, source.Options{Seen: func(int64) {}, Blocks: true}, nil)
	require.NoError(t, err)
	got := contentOf(t, src)
	if want := []string{"a.csv:101 000000000000f03f<nil>", "a.csv:102 0000000000000080<nil>",
		"a.csv:103 0000001000007041<nil>"}; !slices.Equal(got[99:102], want) {
		t.Errorf("%q, want %q", got[99:102], want)
	}
	if n := len(src.(*table).held); n < 5 {
		t.Errorf("only %d blocks are held", n)
	}
}

// A file may have the columns of the first one in another order, or others.
func TestHeldHeadersDiffer(t *testing.T) {
	defer func(n int) { blockBytes = n }(blockBytes)
	blockBytes = 40
	for _, tt := range []struct{ header, want string }{
		{"b,a", " 1400000000000000 0a00000000000000<nil>"},
		{"a,c", "column b: it is missing"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"1.csv": "a,b\n" + strings.Repeat("1,2\n", 100),
			"2.csv": tt.header + "\n" + strings.Repeat("10,20\n", 100)} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
		}
		src, err := OpenCSV(t.Context(), rootOf(t, dir), filepath.Join(dir, "*.csv"), source.Options{Seen: func(int64) {}, Blocks: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := contentOf(t, src)
		if !slices.Equal(got, rowByRow(t, src)) {
			t.Errorf("%q, want %q", got, rowByRow(t, src))
		}
		if len(got) != 200 || !strings.Contains(got[199], tt.want) {
			t.Errorf("%d rows, the last is %q, want %q", len(got), got[len(got)-1], tt.want)
		}
	}
}

// Blank lines, and short ones among lists, take no memory for values.
func TestTypedMemory(t *testing.T) {
	for size, lines := range map[int]string{8: "\n", 80_000: "1\n"} {
		text := strings.Repeat(lines, 50_000)
		b := &block{text: text, lines: 50_000}
		if n := size * mostRows(b, size); n > 8*len(text)+2*size {
			t.Errorf("%d bytes for values of %d bytes in %d of text", n, size, len(text))
		}
	}
}

// contentOf returns all that the blocks of a source hold, or its samples if it has no blocks.
func contentOf(t *testing.T, src source.Source) (list []string) {
	blocks := src.(source.Blocked).Blocks()
	fields := len(src.Info().Fields)
	if blocks == nil {
		return rowByRow(t, src)
	}
	values := source.NewValues(fields)
	rows := source.NewRows(fields)
	for b, err := range blocks {
		require.NoError(t, err)
		rows.Clear()
		require.NoError(t, b.Read(rows))
		odd, good := rows.Odd, 0
		for i := range rows.N {
			if len(odd) > 0 && odd[0].At == i {
				list = append(list, lineOf(string(rows.AppendName(nil, i)), odd[0].Data, values))
				odd = odd[1:]
				continue
			}
			line := string(rows.AppendName(nil, i))
			for k, v := range rows.Values {
				n := len(v) / (rows.N - len(rows.Odd))
				begin, end := good*n, (good+1)*n
				if ends := rows.Ends[k]; len(ends) > 0 {
					begin, end = append([]int{0}, ends...)[good], ends[good]
				}
				line += fmt.Sprintf(" %x", v[begin:end])
			}
			list = append(list, line+"<nil>")
			good++
		}
	}
	return list
}

// Values that are held from the first pass are those that a second one reads, row by row, however types change between
// blocks.
func TestHeldValuesAreExact(t *testing.T) {
	defer func(n int) { blockBytes = n }(blockBytes)
	rng := rand.New(rand.NewPCG(3, 5))
	var whole, part, converted, dropped, cut int
	for i := range 3 * *scanTables {
		blockBytes = 1 + rng.IntN([]int{700, 4000}[i/2%2])
		path := filepath.Join(t.TempDir(), []string{"a.csv", "a.jsonl"}[i%2])
		writeNumbers(t, rng, path)
		open := []func(bool) (source.Source, error){func(hold bool) (source.Source, error) {
			return OpenCSV(t.Context(), rootOf(t, path), path, source.Options{Seen: func(int64) {}, Blocks: hold}, nil)
		}, func(hold bool) (source.Source, error) {
			return OpenJSONL(t.Context(), rootOf(t, path), path, source.Options{Seen: func(int64) {}, Blocks: hold}, nil)
		}}[i%2]
		held, err := open(true)
		plain, again := open(false)
		if fmt.Sprint(err) != fmt.Sprint(again) {
			t.Fatalf("%v, want %v", err, again)
		}
		if err != nil {
			continue
		}
		h := held.(*table)
		if got, want := fmt.Sprint(held.Info()), fmt.Sprint(plain.Info()); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		types, count := guessed(t, h)
		for k, c := range h.columns {
			if c.typ.String() != types[k] || h.info.Count != count {
				text, _ := os.ReadFile(path)
				t.Fatalf("column %s of %d rows is %v, want %d and %s\n%s", c.name, h.info.Count, c.typ, count, types[k], text)
			}
		}
		for range 2 {
			got, want := contentOf(t, held), contentOf(t, plain)
			if !slices.Equal(got, want) {
				text, _ := os.ReadFile(path)
				t.Fatalf("%q\nwant\n%q\nof\n%s", got, want, text)
			}
		}
		if samples := rowByRow(t, held); !slices.Equal(samples, contentOf(t, held)) {
			t.Fatalf("%q, want %q", contentOf(t, held), samples)
		}
		switch {
		case h.whole && len(h.held) > 1:
			whole++
		case len(h.held) > 1:
			part++
		default:
			dropped++
		}
		if i%2 == 0 {
			cut += cutRows(t, h)
		}
		for _, b := range h.held {
			for k, typ := range b.types {
				if typ.DType == tensor.Int64 && h.columns[k].typ.DType.IsFloat() {
					converted++
				}
			}
		}
	}
	if min(whole, part, converted, dropped, cut) < 5 {
		t.Errorf("%d tables held whole, %d in part, %d not; %d columns of blocks converted; %d rows taken apart by column",
			whole, part, dropped, converted, cut)
	}
}

// cutRows returns how many rows of a table are taken apart column by column.
func cutRows(t *testing.T, h *table) (n int) {
	err := h.eachFile(func(file *tableFile) error {
		for {
			b, err := nextBlock(file)
			if b != nil {
				var s splitter
				first, end := s.inner(b.text, len(h.columns), s.split(b.text, b.quoted, ',', len(h.columns)))
				n += end - first
			}
			if err != nil {
				return err
			}
		}
	})
	require.NoError(t, err)
	return n
}

// rowByRow returns what contentOf does, of samples that are read one by one.
func rowByRow(t *testing.T, src source.Source) (list []string) {
	values := source.NewValues(len(src.Info().Fields))
	for s, err := range src.Samples() {
		require.NoError(t, err)
		list = append(list, lineOf(s.Name, s.Data, values))
	}
	return list
}

// lineOf returns the name of a sample and its values or the error.
func lineOf(name string, d source.Data, values *source.Values) string {
	values.Clear()
	err := d.Read(values)
	for k := range values.Len() {
		if err == nil {
			name += fmt.Sprintf(" %x", values.Get(k))
		}
	}
	return fmt.Sprint(name, err)
}
