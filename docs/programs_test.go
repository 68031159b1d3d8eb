package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// called is a command of the project as the beginning of a command line: with a subcommand, a flag, an argument in
// capitals, quotes or braces. alone is a text that is nothing but such a beginning, which other words follow.
var (
	called = regexp.MustCompile(`(?m)(?:^|[^a-z.-])((?:preprocess|inspect|loadbench|feed) (?:--[a-z]|[A-Z]{3}|['{]|(?:merge|status|normalize|show|stats|preview|report|verify|diff|layout|view)\b(?: |[^ a-z]|$)).*)$`)
	alone  = regexp.MustCompile(`(?:^|: |; |run )(?:preprocess|inspect|loadbench|feed) $|(?:: |; |run )(?:preprocess|inspect|loadbench|feed) %s`)
)

// bare returns the command lines of a text that begin with a program which wheels and packages do not install: they
// have one program, penstock.
func bare(text string) (list []string) {
	for _, m := range called.FindAllStringSubmatchIndex(text, -1) {
		if !strings.HasSuffix(text[:m[2]], "penstock ") {
			list = append(list, text[m[2]:m[3]])
		}
	}
	if alone.MatchString(text) {
		list = append(list, text)
	}
	return list
}

func TestBare(t *testing.T) {
	for text, want := range map[string]int{
		"run: preprocess SOURCE DEST": 1, "run: penstock preprocess SOURCE DEST": 0, "see inspect verify.": 1, "; inspect ": 1, "start one: feed {path}": 1,
		"for preprocess --pipeline": 1, "inspect shows all": 0, "what preprocess writes": 0, "penstock.feed SOURCE": 0, "make it again: inspect view %s": 1, "run: preprocess %s": 1, "preprocess %s, %s": 0,
	} {
		if got := bare(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}

// No text of the Go code or of the Python package has a command line under a name that is not installed: Go makes
// such lines with shell.Penstock, and Python writes "penstock" before the command.
func TestHintsNameAnInstalledProgram(t *testing.T) {
	found := 0
	for _, dir := range []string{"../cmd", "../internal", "../loader", "../mmapds", "../prepare", "../remote", "../store", "../tensor", "../transforms", "../python/penstock"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case strings.HasSuffix(path, ".py"):
				text, err := os.ReadFile(path)
				for _, line := range bare(string(text)) {
					t.Errorf("%s: write penstock %s", path, line)
				}
				return err
			case strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go"):
				return nil
			}
			n, err := bareLiterals(t, path)
			found += n
			return err
		})
		require.NoError(t, err)
	}
	if found < 20 {
		t.Errorf("%d calls of makers were found: this test does not see the code", found)
	}
}

var helpText = regexp.MustCompile(`(?i)long$|examples$`)

// makers are the functions of package shell that return command lines.
var makers = map[string]bool{"Penstock": true, "On": true}

// bareLiterals reports the command lines in string literals of a Go file, and returns how many package shell makes.
// Long and Example of a command are left out: package cmd/internal/penstock puts the program before those, and tests
// that.
func bareLiterals(t *testing.T, path string) (made int, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		return 0, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if name, own := n.Fun.(*ast.Ident); ok && makers[s.Sel.Name] || own && makers[name.Name] { // in their package
				made++
				return false
			}
		case *ast.ValueSpec:
			return !helpText.MatchString(n.Names[0].Name)
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Long" || key.Name == "Example" || key.Name == "Use") {
				return false
			}
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			for _, line := range bare(strings.Trim(n.Value, "`\"")) {
				t.Errorf("%s: %s: make the line with shell.Penstock", set.Position(n.Pos()), line)
			}
		}
		return true
	})
	return made, nil
}
