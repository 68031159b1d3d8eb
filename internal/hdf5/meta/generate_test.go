package meta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

// answers describe the files that testdata/generate.py writes, as h5py reads them.
type answers map[string]struct {
	UserBlock int64             `json:"userblock"`
	Objects   map[string]answer `json:"objects"`
}

type answer struct {
	Kind     string                 `json:"kind"`
	Type     string                 `json:"type"`
	Target   string                 `json:"target"`
	File     string                 `json:"file"`
	Layout   string                 `json:"layout"`
	Offset   int64                  `json:"offset"`
	Header   int64                  `json:"header"`
	Filters  []json.RawMessage      `json:"filters"`
	Attrs    map[string]valueAnswer `json:"attrs"`
	External int                    `json:"external"`
	Space    string                 `json:"space"`
	Dims     []int64                `json:"dims"`
	Max      []int64                `json:"max"`
	Chunks   []int64                `json:"chunks"`
	Value    *valueAnswer           `json:"value"`
	Index    []json.RawMessage      `json:"index"`
}

type valueAnswer struct {
	Kind    string    `json:"kind"`
	Dims    []int64   `json:"dims"`
	Strings []string  `json:"strings"`
	Bools   []bool    `json:"bools"`
	Uints   []string  `json:"uints"`
	Ints    []int64   `json:"ints"`
	Floats  []float64 `json:"floats"`
}

var generated struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if generated.dir != "" {
		os.RemoveAll(generated.dir)
	}
	os.Exit(code)
}

// generate runs testdata/generate.py once per test run and returns its folder.
func generate(t testing.TB) string {
	t.Helper()
	py := h5test.Python(t)
	generated.once.Do(func() {
		if generated.dir, generated.err = os.MkdirTemp("", "meta"); generated.err != nil {
			return
		}
		out, err := exec.Command(py, "testdata/generate.py", generated.dir).CombinedOutput()
		if err != nil {
			generated.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if generated.err != nil {
		t.Fatal(generated.err)
	}
	return generated.dir
}

func readAnswers(t testing.TB, dir string) answers {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "answers.json"))
	require.NoError(t, err)
	var a answers
	require.NoError(t, json.Unmarshal(b, &a))
	return a
}

func mustOpen(t testing.TB, name string) *File {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(name), err)
	}
	return f
}
