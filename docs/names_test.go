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

// text is a piece of a page, of a Python file, or a comment of Go, that names things.
type text struct {
	where string
	line  int
	words string
}

// described returns what describes the project: README, the pages of docs/ and examples/, SECURITY.md, the Python
// package, and the comments of Go, tests left out.
func described(t *testing.T) (list []text) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "out", "bin", "dist", "style", "tests", "bench"}, name)):
			return filepath.SkipDir
		case name == "CHANGELOG.md" || name == "cli.md" || strings.HasSuffix(name, "_test.go") || path == "../python/bench":
			return nil
		case strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".py"):
			data, err := os.ReadFile(path)
			list = append(list, text{path, 1, string(data)})
			return err
		case strings.HasSuffix(name, ".go"):
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			for _, group := range file.Comments {
				list = append(list, text{path, set.Position(group.Pos()).Line, group.Text()})
			}
		}
		return nil
	})
	if err != nil || len(list) < 1000 {
		t.Fatalf("%d texts, error %v", len(list), err)
	}
	return list
}

var flagName = regexp.MustCompile("(?:^|[\\s`(\"'/\\[,|])(--[a-z][a-z0-9-]*[a-z0-9])")

// foreign are flags of other programs that pages name, with the program.
var foreign = map[string]string{
	"--array":          "sbatch",
	"--check":          "ruff",
	"--codecs":         ".ci/release",
	"--dependency":     "sbatch",
	"--export":         "sbatch",
	"--for":            "kubectl",
	"--gpus":           "docker",
	"--ipc":            "docker",
	"--job-name":       "sbatch",
	"--master":         "spark-submit",
	"--max-restarts":   "torchrun",
	"--nnodes":         "torchrun",
	"--nproc-per-node": "torchrun",
	"--nthreads":       "dask worker",
	"--only":           ".ci/release",
	"--open-mode":      "sbatch",
	"--parsable":       "sbatch",
	"--pid":            "docker",
	"--rdzv-backend":   "torchrun",
	"--rdzv-endpoint":  "torchrun",
	"--recursive":      "aws",
	"--requeue":        "sbatch",
	"--seeds":          "an example",
	"--shm-size":       "docker",
	"--steps":          "an example",
	"--target":         "pip",
	"--build-arg":      "docker",
	"--task":           "an example",
	"--timeout":        "kubectl",
	"--wrap":           "sbatch",
}

// unknownFlags returns the flags that a text names and no command has.
func unknownFlags(words string, known map[string]bool) (list []string) {
	for _, m := range flagName.FindAllStringSubmatch(words, -1) {
		if !known[m[1]] && foreign[m[1]] == "" {
			list = append(list, m[1])
		}
	}
	return list
}

// Every flag that a text names exists: docs/cli.md, which package cmd/internal/man compares with --help, lists all.
func TestFlagsExist(t *testing.T) {
	page, err := os.ReadFile("cli.md")
	require.NoError(t, err)
	known := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-[a-zA-Z], )?(--[a-z][a-z0-9-]*)`).FindAllStringSubmatch(string(page), -1) {
		known[m[1]] = true
	}
	if len(known) < 60 {
		t.Fatalf("%d flags in cli.md", len(known))
	}
	if got := unknownFlags("of `preprocess --transforms`, --resize 2 or --pipeline; (--invented)", known); !slices.Equal(got, []string{"--transforms", "--invented"}) {
		t.Errorf("this test finds %q", got)
	}
	for _, x := range described(t) {
		for _, flag := range unknownFlags(x.words, known) {
			t.Errorf("%s:%d: no command has the flag %s", x.where, x.line, flag)
		}
	}
}

// pythonNames maps the modules of the Python package, "" being penstock, to the names that each has.
func pythonNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	paths, err := filepath.Glob("../python/penstock/*.py")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d modules, error %v", len(paths), err)
	}
	packages, err := filepath.Glob("../python/penstock/*/__init__.py")
	require.NoError(t, err)
	defined := regexp.MustCompile(`(?m)^(?:class |(?:async )?def |)([A-Za-z]\w*)\b *(?:[(:=\[]|$)`)
	listed := regexp.MustCompile(`(?s)__all__ = \[(.*?)\]`)
	names := map[string]map[string]bool{"": {"__version__": true, "open": true, "map": true}} // the last two are not in __all__
	for _, path := range append(paths, packages...) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		module := strings.TrimSuffix(filepath.Base(path), ".py")
		if module == "__init__" {
			module = filepath.Base(filepath.Dir(path))
			if module == "penstock" {
				module = ""
			}
			if m := listed.FindStringSubmatch(string(data)); m != nil {
				if names[module] == nil {
					names[module], names[""][module] = make(map[string]bool), true
				}
				for _, name := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(m[1], -1) {
					names[module][name[1]] = true
				}
			} else if module == "" {
				t.Fatal("penstock has no __all__")
			}
			continue
		}
		names[module] = make(map[string]bool)
		if !strings.HasPrefix(module, "_") {
			names[""][module] = true
		}
		for _, m := range defined.FindAllStringSubmatch(string(data), -1) {
			names[module][m[1]] = true
		}
		for _, m := range regexp.MustCompile(`(?m)^from \S+ import (?:\(([^)]*)\)|(.*))$`).FindAllStringSubmatch(string(data), -1) {
			for _, name := range regexp.MustCompile(`\w+`).FindAllString(m[1]+m[2], -1) {
				names[module][name] = true
			}
		}
	}
	return names
}

var attribute = regexp.MustCompile(`(?:^|[^\w./~-])penstock\.([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?`)

// files lists words that follow "penstock." in names of files.
var files = []string{"h5", "rb", "exe", "bash", "zsh", "fish", "ps1", "zarr"}

// unknownAttributes returns the attributes of penstock, or of a module of it, that a text names and that do not exist.
func unknownAttributes(words string, names map[string]map[string]bool) (list []string) {
	for _, m := range attribute.FindAllStringSubmatch(words, -1) {
		members := names[m[1]]
		if !names[""][m[1]] && !slices.Contains(files, m[1]) || names[""][m[1]] && members != nil && m[2] != "" && !members[m[2]] {
			list = append(list, strings.Trim(m[0], " `\n(\"'"))
		}
	}
	return list
}

// Every attribute of the Python package that a text names exists.
func TestPythonNamesExist(t *testing.T) {
	names := pythonNames(t)
	if got := unknownAttributes("see `penstock.infer`, penstock.DataLoader and penstock.transforms.Invented, penstock.samplers.Block", names); !slices.Equal(got, []string{"penstock.infer", "penstock.transforms.Invented"}) {
		t.Errorf("this test finds %q", got)
	}
	for _, x := range described(t) {
		for _, name := range unknownAttributes(x.words, names) {
			t.Errorf("%s:%d: the Python package has no %s", x.where, x.line, name)
		}
	}
}

// goNames lists the names that the packages of this module have, by package: types, functions, variables,
// constants, and methods and fields of all.
func goNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	names := make(map[string]map[string]bool)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() != ".." && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata" || d.Name() == "out"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		pkg := strings.TrimSuffix(file.Name.Name, "_test")
		if names[pkg] == nil {
			names[pkg] = make(map[string]bool)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[pkg][n.Name.Name] = true
			case *ast.TypeSpec:
				names[pkg][n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[pkg][name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					names[pkg][name.Name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil || len(names) < 60 {
		t.Fatalf("%d packages, error %v", len(names), err)
	}
	return names
}

var symbol = regexp.MustCompile(`(?:^|[^\w./-])([a-z][a-z0-9]*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// unknownSymbols returns the names of packages of this module, with a symbol or a member of it, that a text has and
// that do not exist in Go, nor in the Python module of that name.
func unknownSymbols(words string, goNames, python map[string]map[string]bool) (list []string) {
	for _, m := range symbol.FindAllStringSubmatch(words, -1) {
		members := goNames[m[1]]
		if members == nil || m[1] == "main" || m[1] == "penstock" || python[m[1]][m[2]] {
			continue
		}
		if !members[m[2]] || m[3] != "" && !members[m[3]] {
			list = append(list, m[1]+"."+m[2]+strings.TrimSuffix("."+m[3], "."))
		}
	}
	return list
}

// Every symbol of a Go package that a text names exists.
func TestGoNamesExist(t *testing.T) {
	names, python := goNames(t), pythonNames(t)
	if got := unknownSymbols("(`store.CheckHDF5Seal`, store.Open, loader.Options.Seeed, loader.Stats)", names, python); !slices.Equal(got, []string{"store.CheckHDF5Seal", "loader.Options.Seeed"}) {
		t.Errorf("this test finds %q", got)
	}
	for _, x := range described(t) {
		if strings.HasSuffix(x.where, ".py") || strings.Contains(x.where, "gomlxds") { // Python's modules, and GoMLX's packages
			continue
		}
		for _, name := range unknownSymbols(x.words, names, python) {
			t.Errorf("%s:%d: there is no %s", x.where, x.line, name)
		}
	}
}

// Pages that list the filters of HDF5 list all that package meta knows.
func TestFiltersAreListed(t *testing.T) {
	code, err := os.ReadFile("../internal/hdf5/meta/filter.go")
	require.NoError(t, err)
	known := regexp.MustCompile(`(?m)^\tFilter([A-Z]\w+) `).FindAllStringSubmatch(string(code), -1)
	if len(known) < 12 {
		t.Fatalf("%d filters in package meta", len(known))
	}
	for _, page := range []string{"hdf5.md", "../mmapds/doc.go"} {
		data, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range known {
			if !strings.Contains(strings.ToLower(string(data)), strings.ToLower(m[1])) {
				t.Errorf("%s does not name the filter %s", page, strings.ToLower(m[1]))
			}
		}
	}
}

// The number of modules that architecture.md names is that of a program that imports loader and mmapds.
func TestModulesOfATrainer(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "../loader", "../mmapds")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", list, err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	modules = slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == "github.com/penstock/penstock" })
	page, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	if want := fmt.Sprintf("builds packages of %d modules besides this one", len(modules)); !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("architecture.md has no sentence with %q: %v", want, modules)
	}
}

// The version of Go that README.md asks for is that of go.mod.
func TestVersionOfGo(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(string(mod))
	readme, err := os.ReadFile("../README.md")
	if err != nil || version == nil || !strings.Contains(string(readme), "Go "+version[1]+" or newer") {
		t.Errorf("README.md does not ask for Go %v or newer, error %v", version, err)
	}
}

// Nothing is released: no text has a line that takes penstock from a package index, where its name is anyone's.
func TestNothingIsTakenFromAnIndex(t *testing.T) {
	index := regexp.MustCompile(`(?:pip|pipx|uv|conda|brew) (?:pip )?install "?penstock|go get github\.com/penstock|penstock@latest`)
	for line, want := range map[string]bool{"pip install penstock[torch]": true, "pip install dist/penstock-*.whl": false, "go get github.com/penstock/penstock": true} {
		if index.MatchString(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
	texts := described(t)
	for _, path := range []string{"../cmd/internal/doctor/examine.go", "../README.md", "../CHANGELOG.md"} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		texts = append(texts, text{path, 1, string(data)})
	}
	for _, x := range texts {
		if line := index.FindString(x.words); line != "" {
			t.Errorf("%s:%d: %q does not work: nothing is released", x.where, x.line, line)
		}
	}
}

// The names in the walks of the page about the architecture exist in the code.
func TestWalksAreTrue(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	names, all := goNames(t), make(map[string]bool)
	for pkg, members := range names {
		all[pkg] = true
		for name := range members {
			all[name] = true
		}
	}
	if got := unknownSteps("1. `Loader.Epochs` has a `sheduler`, and `store/flat` a `Container`.", all); !slices.Equal(got, []string{"sheduler"}) {
		t.Errorf("this test finds %q", got)
	}
	n := 0
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		if title != "The way of one record" && title != "The way of one batch" && title != "The way of one opened file" {
			continue
		}
		n++
		for _, name := range unknownSteps(text, all) {
			t.Errorf("architecture.md: %s: there is no %s", title, name)
		}
	}
	if n != 3 {
		t.Errorf("%d walks", n)
	}
}

var step = regexp.MustCompile("`([A-Za-z][A-Za-z0-9.]*)`")

// unknownSteps returns the names in a walk that have a part that does not exist. Paths have slashes, and are not names.
func unknownSteps(text string, all map[string]bool) (list []string) {
	for _, m := range step.FindAllStringSubmatch(text, -1) {
		for part := range strings.SplitSeq(m[1], ".") {
			if !all[part] {
				list = append(list, m[1])
				break
			}
		}
	}
	return list
}
