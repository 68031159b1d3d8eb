package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// Every test that a page names exists, or begins the name of one.
func TestNamedTestsExist(t *testing.T) {
	var known []string
	declared := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(|^class (Test[A-Z]\w*)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "out" || d.Name() == ".git" || d.Name() == ".venv") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(filepath.Base(path), "test_") {
			return nil
		}
		data, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(data), -1) {
			known = append(known, m[1]+m[2])
		}
		return err
	})
	if err != nil || len(known) < 1000 {
		t.Fatalf("%d tests are known, error %v", len(known), err)
	}
	named := regexp.MustCompile(`\bTest[A-Z]\w+`)
	found := 0
	for _, page := range append(pages(t), "../SECURITY.md", "../CONTRIBUTING.md") {
		for _, name := range named.FindAllString(read(t, page), -1) {
			found++
			if !slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, name) }) {
				t.Errorf("%s names the test %s, which does not exist", page, name)
			}
		}
	}
	if found < 30 {
		t.Errorf("%d names of tests were found in the pages", found)
	}
}

// make build makes each command that has a package main in cmd/, and nothing else.
func TestBuildMakesTheCommands(t *testing.T) {
	line := regexp.MustCompile(`(?m)^\t.* go build .*-o bin/ (.*)$`).FindStringSubmatch(read(t, "../Makefile"))
	if line == nil {
		t.Fatal("the Makefile has no go build into bin/")
	}
	mains, err := filepath.Glob("../cmd/*/main.go")
	require.NoError(t, err)
	var want []string
	for _, path := range mains {
		want = append(want, "./cmd/"+filepath.Base(filepath.Dir(path)))
	}
	if got := strings.Fields(line[1]); !slices.Equal(got, want) {
		t.Errorf("make build makes %q; the commands are %q", got, want)
	}
}

// install.md's number of indirect modules is that of a program that imports loader and mmapds, and README.md and store's
// comment name what exists: packages with a Create.
func TestInstallAndStoreAreTrue(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-tags", "nocloud", "-f", "{{with .Module}}{{.Path}}{{end}}", "../loader", "../mmapds")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", list, err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	numbers := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight"}
	n := len(slices.Compact(modules)) - 1
	if want := fmt.Sprintf("gets %s indirect modules and no cgo", numbers[n]); !strings.Contains(strings.Join(strings.Fields(read(t, "install.md")), " "), want) {
		t.Errorf("install.md does not say %q", want)
	}
	comment := regexp.MustCompile(`Create in packages ([a-z0-9, ]+?) ?and ([a-z0-9]+)\)`).FindStringSubmatch(read(t, "../store/doc.go"))
	if comment == nil {
		t.Fatal("store/doc.go does not list the packages with a Create")
	}
	var have []string
	dirs, _ := filepath.Glob("../store/*")
	for _, dir := range dirs {
		if creates(t, dir) {
			have = append(have, filepath.Base(dir))
		}
	}
	if got := append(strings.Split(strings.TrimRight(comment[1], ", "), ", "), comment[2]); !slices.Equal(got, have) {
		t.Errorf("store/doc.go lists %q, and %q have a Create", got, have)
	}
}

// creates reports whether a package has a function Create.
func creates(t *testing.T, dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "Create" {
				return true
			}
		}
	}
	return false
}
