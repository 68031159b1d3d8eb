package table

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

var scanTables = flag.Int("scan-tables", 40, "random tables of TestScanIsExact")

// cellKinds are cells that decide differently about the type of their column.
var cellKinds = [][]string{
	{"0.6369616873214543", "0.016527635528529094", "-3.25", "1e-05", "7.", "12345678.5", "1e39", "nan"},
	{"0", "7", "-12", "16777217", "9007199254740993", "9223372036854775808", "007", "18446744073709551616"},
	{"true", "False"}, {`"[1,2]"`, "[3]", `"[0.5,1]"`}, {"1 2", "3 4.5"}, {"cat", "NA", "x.png", "1_0", "-", "."}, {""},
}

// randomTable returns a CSV file. Most columns hold one kind of cells until the last row, or one of the last.
func randomTable(rng *rand.Rand, rows int) string {
	columns := 2 + rng.IntN(6)
	kinds := make([][]string, columns)
	var text strings.Builder
	for i := range columns {
		kinds[i] = cellKinds[rng.IntN(3)]
		fmt.Fprintf(&text, "%sc%d", strings.Repeat(",", min(i, 1)), i)
	}
	text.WriteByte('\n')
	for row := range rows {
		for i, kind := range kinds {
			cell := kind[rng.IntN(min(3, len(kind)))]
			if left := rows - 1 - row; left == 0 && i%2 == 0 || left < 9 && rng.IntN(9) == 0 {
				other := cellKinds[rng.IntN(len(cellKinds))]
				cell = other[rng.IntN(len(other))]
			}
			text.WriteString(strings.Repeat(",", min(i, 1)) + cell)
		}
		text.WriteString([]string{"\n", "\n\n", "\r\n"}[rng.IntN(3)])
	}
	return text.String()
}

// A scan in blocks, on all CPUs, finds for each column what one Guess finds that is given its cells one by one, though
// the cell that decides is in the last row.
func TestScanIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	path := filepath.Join(t.TempDir(), "a.csv")
	types := make(map[string]bool)
	for range *scanTables {
		rows := 1 + rng.IntN(4)
		if rng.IntN(4) == 0 {
			rows = 20_000 // several blocks
		}
		text := randomTable(rng, rows)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		src, err := OpenCSV(t.Context(), rootOf(t, path), path, source.Options{Seen: func(int64) {}}, nil)
		require.NoError(t, err)
		got := src.(*table)
		want, count := guessed(t, got)
		if got.info.Count != count {
			t.Errorf("%d rows, want %d", got.info.Count, count)
		}
		for i, c := range got.columns {
			types[c.typ.String()] = true
			if c.typ.String() != want[i] {
				t.Errorf("column %s of\n%.300s\nis %v, want %s", c.name, text, c.typ, want[i])
			}
		}
	}
	if len(types) < 6 {
		t.Errorf("only the types %v", types)
	}
}

// guessed returns the type of each column, and the number of rows, from one row after the other.
func guessed(t *testing.T, of *table) (types []string, rows int64) {
	guesses := make([]column.Guess, len(of.columns))
	for row, err := range of.rows() {
		require.NoError(t, err)
		rows++
		_ = of.format.each(row, func(i int, _ string, c column.Cell) { guesses[i].Add(c) })
	}
	for i := range guesses {
		types = append(types, guesses[i].Result(of.columns[i].name).String())
	}
	return types, rows
}

// The row that made a column text is found in any block.
func TestScanNamesTheFirstOddRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	text := "a,b\n" + strings.Repeat("0.25,\n\n", 50_000) + "x,\n" + strings.Repeat("y,\n", 50_000)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	src, err := OpenCSV(t.Context(), rootOf(t, path), path, source.Options{Seen: func(int64) {}}, nil)
	require.NoError(t, err)
	if origin := src.Info().Fields[0].Origin; !strings.Contains(origin, `"x" in row 50001 is not a number`) {
		t.Error(origin)
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
