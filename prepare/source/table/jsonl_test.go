package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// Text that JSON readers change, and names that they do not agree about, make a bad row.
func TestJSONRowsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{\"a\": \"x\xff\"}":                          "not UTF-8",
		"{\"a\": [\"x\xff\"]}":                        "not UTF-8",
		`{"a": "\ud83d"}`:                             `the escape \ud83d`,
		`{"a": "\ud83dx"}`:                            `the escape \ud83d`,
		`{"a": "\ude00\ud83d"}`:                       `the escape \ude00`,
		`{"a": "\ud83d\ud83d"}`:                       `the escape \ud83d`,
		`{"a": {"b": "\udead"}}`:                      `the escape \udead`,
		`{"a.b": 1, "a": {"b": 5}}`:                   `two members are called "a.b"`,
		`{"a": 1, "b": 2, "a": 3}`:                    `two members are called "a"`,
		`{"a": 1, "b": "\n", "a": 3}`:                 `two members are called "a"`,
		"{\"a\":1}\x00{\"a\":2}":                      "text after the JSON object",
		"{\"a\":1}\x00":                               "text after the JSON object",
		`{"` + strings.Repeat(`x":1,"`, 20) + `y":2}`: `two members are called "x"`,
	} {
		row := tableRow{text: text}
		err := jsonlFormat{}.each(&row, func(int, string, column.Cell) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{`{"a": "\ud83d\ude00", "b": "\\ud83d", "c": "\\\\ud83d"}`, `{"b": 1, "a": {"b": 2}}`, `{"a": "\u00e9"}`} {
		row := tableRow{text: text, file: &tableFile{table: &table{order: []string{"a", "b"}, keys: []string{"a", "b"}}}}
		if err := (jsonlFormat{}).each(&row, func(int, string, column.Cell) {}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	row := tableRow{text: `{"a": 1, "b": 2, "b": 3}`, file: &tableFile{table: &table{order: []string{"a", "b"}, keys: []string{"a", "b"}}}}
	if err := (jsonlFormat{}).each(&row, func(int, string, column.Cell) {}); err == nil {
		t.Error("a name that comes twice after members in order is accepted")
	}
}

// The note on a column of text names the empty string that makes it one, not the number after it.
func TestNoteOfEmptyString(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("{\"a\":1}\n{\"a\":\"\"}\n{\"a\":-12}\n"), 0o666))
	src, err := OpenJSONL(t.Context(), rootOf(t, path), path, source.Options{Seen: func(int64) {}}, nil)
	require.NoError(t, err)
	if got, want := src.Info().Fields[0].Origin, `"" in row 2 is not a number`; !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// An array becomes the lines of its elements, whatever the blanks between them and wherever a read ends.
func TestArrayLines(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		elements := []any{map[string]any{"a": 1}}
		for range rng.IntN(6) {
			elements = append(elements, randomValue(rng, 3))
		}
		text, err := json.MarshalIndent(elements, "", strings.Repeat(" ", rng.IntN(3)))
		require.NoError(t, err)
		for _, r := range []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text))} {
			r, err := newArrayLines(r)
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			var want bytes.Buffer
			for i, e := range elements {
				line, err := json.Marshal(e)
				require.NoError(t, err)
				if want.Write(line); i+1 < len(elements) {
					want.WriteByte('\n')
				}
			}
			compact := make([]string, 0, len(elements))
			for line := range bytes.Lines(got) {
				var b bytes.Buffer
				if err := json.Compact(&b, line); err != nil {
					t.Fatalf("%q of %s: %v", line, text, err)
				}
				compact = append(compact, b.String())
			}
			if strings.Join(compact, "\n") != want.String() {
				t.Fatalf("seed %d: %s of %s, want %s", seed, got, text, want.String())
			}
		}
	}
}

// randomValue returns a value of JSON.
func randomValue(rng *rand.Rand, depth int) any {
	switch k := rng.IntN(7); {
	case k == 0 && depth > 0:
		list := make([]any, rng.IntN(3))
		for i := range list {
			list[i] = randomValue(rng, depth-1)
		}
		return list
	case k < 3 && depth > 0:
		object := make(map[string]any)
		for i := range rng.IntN(3) {
			object[fmt.Sprintf("k\\%d\"", i)] = randomValue(rng, depth-1)
		}
		return object
	case k == 3:
		return rng.IntN(100)
	case k == 4:
		return nil
	}
	return []string{"", "a b", "[{", "}],", "\\", "\"", "x\\\"y", "\n", "é  ü"}[rng.IntN(9)]
}
