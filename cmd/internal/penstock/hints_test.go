package penstock

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"image"
	"image/png"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/testkit/require"
)

// hints are command lines whose output names a command, and that command, in an order in which each finds what it needs.
var hints = []struct {
	from  string // the calls of package shell that write it, as in callsOfPenstock
	line  string
	named string
}{
	{"cmd/internal/inspect/summary/raw.go command", "inspect photos", "preprocess --keep-encoded photos photos-ds"},
	{"cmd/internal/inspect/dataset/refusal.go command", "inspect preview -o g.png photos", "preprocess --keep-encoded photos photos.h5"},
	{"cmd/internal/inspect/dataset/refusal.go command", "inspect preview -o g.png table.csv", "preprocess table.csv table.h5"},
	{"cmd/internal/preprocess/summary.go inspect", "preprocess table.csv ds", "inspect ds"},
	{"cmd/internal/inspect/dataset/target.go inspect", "inspect preview -o g.png ds/manifest.json", "inspect ds"},
	{"store/generation.go log", "inspect ds@7", "log ds"},
	{"cmd/internal/datasetarg/generations.go restore", "column drop ds@1 y", "restore ds@1"},
	{"cmd/internal/preprocess/summary.go preprocess merge", "preprocess --rank 0 --world-size 1 table.csv parted", "preprocess merge parted"},
	{"cmd/internal/inspect/dataset/refusal.go preprocess merge", "inspect preview -o g.png third.parts", "preprocess merge third"},
	{"cmd/internal/demo/draw.go demo", "demo --no-open photos", "demo photos-2"},
	{"cmd/internal/preprocess/cache_command.go preprocess", "preprocess cache torn.csv",
		"preprocess torn.csv torn-flat --on-error skip"},
	{"", "cache pin nothing", "cache list"},
	{"internal/layout/hdf5_file.go preprocess", "prune changed.h5", "preprocess changed.h5 changed-flat"},
	{"store/hdf5/view/encode.go preprocess", "inspect view less", "preprocess less less-flat"},
	{"store/errors.go preprocess", "log numbers.npy", "preprocess numbers.npy numbers-flat"},
	{"prepare/normalize.go preprocess", "preprocess normalize pixels dataset", "preprocess pixels pixels-flat --normalize dataset"},
	{"store/write/normalize.go preprocess", "preprocess normalize stored.h5 imagenet", "preprocess stored.h5 stored-flat --normalize dataset"},
	{"store/write/generation.go prune", "preprocess --append table.csv long.zarr", "prune long.zarr"},
	{"prepare/config.go inspect show --recipe", "preprocess --append table.csv grown", "inspect show --recipe grown"},
	{"prepare/measure.go inspect show --recipe", "preprocess --append --normalize dataset photos again-8", "inspect show --recipe again-8"},
	{"prepare/config.go preprocess merge", "preprocess --rank 0 --world-size 1 --view table.csv viewed", "preprocess merge viewed"},
	{"prepare/config.go inspect view", "preprocess --rank 0 --world-size 2 --view table.csv viewed", "inspect view viewed"},
	{"cmd/internal/inspect/verify/view.go inspect view", "inspect verify viewed", "inspect view viewed"},
	{"cmd/internal/inspect/dataset/zarr.go preprocess", "inspect preview -o g.png odd.zarr", "preprocess odd.zarr odd.h5 --fields b"},
	{"store/write/generation.go tag --remove", "preprocess --append table.csv tagged.zarr", "tag --remove tagged.zarr best"},
}

// before are the command lines that make what those of hints find, by line.
var before = map[string][]string{
	"column drop ds@1 y":                                         {"column rename ds y z"},
	"inspect preview -o g.png third.parts":                       {"preprocess --rank 0 --world-size 1 table.csv third"},
	"prune changed.h5":                                           {"preprocess table.csv changed.h5", "column rename changed.h5 y z"},
	"inspect view less":                                          {"preprocess table.csv less", "delete less --where x=1"},
	"preprocess normalize pixels dataset":                        {"preprocess --resize 8x8 photos pixels", "delete pixels --records 0"},
	"preprocess normalize stored.h5 imagenet":                    {"preprocess --resize 8x8 photos stored.h5", "inspect verify stored.h5"},
	"preprocess --append table.csv grown":                        {"preprocess table.csv grown"},
	"preprocess --append --normalize dataset photos again-8":     {"preprocess --resize 8x8 photos again-8"},
	"preprocess --rank 0 --world-size 1 --view table.csv viewed": {"preprocess --rank 0 --world-size 1 table.csv viewed"},
	"inspect verify viewed":                                      {"column rename viewed y z"},
	"preprocess --append table.csv long.zarr":                    {"preprocess table.csv long.zarr", "column rename long.zarr y z", "column rename long.zarr z y"},
	"preprocess --append table.csv tagged.zarr":                  {"preprocess table.csv tagged.zarr", "tag tagged.zarr best"},
}

// Every command that a message names runs as it stands, on the input that the message is about.
func TestHintsRun(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	t.Chdir(dir)
	for i, name := range []string{"photos/a/0.png", "photos/a/1.png", "photos/b/0.png"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
		f, err := os.Create(name)
		require.NoError(t, err)
		require.NoError(t, png.Encode(f, image.NewGray(image.Rect(0, 0, 8+i, 9))))
		require.NoError(t, f.Close())
	}
	numbers := fmt.Sprintf("\x93NUMPY\x01\x00v\x00%-117s\n%016d", "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", 0)
	texts := map[string]string{"table.csv": "x,y\n1,2\n3,4\n5,6\n", "torn.csv": "x,y\n1,2\n3\n",
		"numbers.npy": numbers, "odd.zarr/.zgroup": `{"zarr_format": 2}`}
	for name, n := range map[string]int{"a": 4, "b": 5} {
		texts["odd.zarr/"+name+"/.zarray"] = fmt.Sprintf(`{"zarr_format": 2, "shape": [%d], "chunks": [%[1]d], "dtype": "|u1", `+
			`"compressor": null, "filters": null, "fill_value": 0, "order": "C"}`, n)
		texts["odd.zarr/"+name+"/0"] = strings.Repeat("x", n)
	}
	for name, text := range texts {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
	}
	for _, h := range hints {
		for _, line := range before[h.line] {
			if code, out, diag := run(t, strings.Fields(line)...); code != cli.ExitDone {
				t.Fatalf("%s: code %d: %s%s", line, code, out, diag)
			}
		}
		_, out, diag := run(t, strings.Fields(h.line)...)
		text := strings.ReplaceAll(out+diag, dir+string(filepath.Separator), "")
		if !regexp.MustCompile(`penstock ` + regexp.QuoteMeta(h.named) + `(?:[\s,;:)]|\.?$)`).MatchString(text) {
			t.Errorf("%s: does not name penstock %s:\n%s", h.line, h.named, text)
			continue
		}
		if code, out, diag := run(t, strings.Fields(h.named)...); code != cli.ExitDone && code != cli.ExitSkipped {
			t.Errorf("%s: it names penstock %s, which ends with code %d: %s%s", h.line, h.named, code, out, diag)
		}
	}
}

// unrun are the calls of shell.Penstock whose commands hints leaves out: they have words in capitals for what only the
// reader knows, or need a source that tests of their own packages make.
var unrun = strings.Split(strings.TrimSpace(`
cmd/internal/inspect/dataset/refusal.go preprocess SOURCE DEST
cmd/internal/inspect/dataset/target.go inspect verify
cmd/internal/inspect/dataset/zarr.go preprocess SOURCE DEST
cmd/internal/inspect/layout/window.go preprocess --fields
cmd/internal/inspect/show/command.go preprocess --pipeline
cmd/internal/inspect/stats/text.go inspect verify
cmd/internal/loadbench/label_order.go preprocess --shuffle SEED
cmd/internal/preprocess/normalize_command.go preprocess
cmd/internal/preprocess/normalize_command.go preprocess SOURCE DEST --normalize
cmd/internal/rawcache/intact.go cache
internal/hdf5/chunk/advice.go preprocess
internal/hdf5/meta/remedy.go preprocess
internal/hdf5/meta/siblings.go preprocess
loader/combine/derive.go preprocess VIEW DEST
loader/diagnose.go preprocess OLD.h5 NEW.h5
loader/views/limits.go preprocess VIEW DEST
prepare/internal/commit/part/parts.go preprocess SOURCE DEST --rank R --world-size N
prepare/raw/listing.go preprocess
prepare/source/array/source.go inspect
prepare/source/dataset/dataset.go inspect verify
store/generation.go preprocess SOURCE DEST
store/hdf5/replacement.go preprocess
store/hdf5_reader.go preprocess OLD.h5 DEST
store/hdf5_reader.go preprocess OLD.h5 NEW.h5
store/hdf5_reader.go preprocess SOURCE DEST
prepare/append_target.go preprocess
store/write/bucket/home.go preprocess
store/npy_reader.go preprocess
store/zarr_reader.go preprocess
store/open.go inspect
store/write/appending.go preprocess
store/write/extend.go inspect show --recipe
`), "\n")

// A message with a new command has a row in hints.
func TestHintsAreListed(t *testing.T) {
	listed := make(map[string]bool)
	for _, name := range unrun {
		listed[name] = false
	}
	for _, h := range hints {
		if h.from != "" {
			listed[h.from] = false
		}
	}
	for _, call := range callsOfPenstock(t) {
		if _, ok := listed[call]; !ok {
			t.Errorf("%s: a message names a command that no test runs; add a row to hints", call)
		}
		listed[call] = true
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if !listed[name] {
			t.Errorf("%s: there is no such call any more; take it out of the table", name)
		}
	}
}

// callsOfPenstock returns the file of each call of shell.Penstock and shell.On with its first argument, and of each call of
// shell.Rewrite with preprocess.
func callsOfPenstock(t *testing.T) (list []string) {
	const top = "../../.."
	for _, dir := range []string{"cmd", "internal", "loader", "mmapds", "prepare", "remote", "store", "tensor", "transforms"} {
		err := filepath.WalkDir(filepath.Join(top, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(top, path)
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				switch s, ok := call.Fun.(*ast.SelectorExpr); {
				case ok && (s.Sel.Name == "Penstock" || s.Sel.Name == "On"):
					list = append(list, filepath.ToSlash(name)+" "+first(call.Args[0]))
				case ok && s.Sel.Name == "Rewrite" && len(call.Args) == 2:
					list = append(list, filepath.ToSlash(name)+" preprocess")
				}
				return true
			})
			return err
		})
		require.NoError(t, err)
	}
	return list
}

// first returns a string literal, or the name of a variable, at the beginning of an expression.
func first(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return first(e.X)
	case *ast.Ident:
		return e.Name
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return strings.TrimSpace(text)
	}
	return "?"
}
