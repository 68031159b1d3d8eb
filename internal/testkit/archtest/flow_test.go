package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	largestMethodSet = 25 // methods that a value of a type can reach, those of embedded types included
	tenth            = 10 // at most one import between files in this number runs against the flow,
	fewAgainst       = 3  // or this many of a small package
)

// manyMethods are the types with larger method sets, with the reason.
var manyMethods = map[string]string{
	"loader/combine.Concat":  "a Source with every capability that its sources have: the methods of thirteen interfaces of package loader",
	"loader/combine.View":    "a Source with every capability that its sources have: the methods of thirteen interfaces of package loader",
	"loader/combine.Windows": "a Source with every capability that its sources have: the methods of ten interfaces of package loader",
	"loader/cuda.Device":     "one context of the driver: what streams, events, kernels and memory ask of it under its lock",
	"mmapds.Dataset":         "what users open: the methods of nine interfaces of package loader, and little more",
	"prepare/raw.Source":     "what users open: the methods of nine interfaces of package loader, and little more",
	"remote/mirror.Dataset":  "a mmapds.Dataset with what a mirror adds",
}

// tangled are the packages with more imports against the flow, with the reason.
var tangled = map[string]string{}

// goPackage is a package in the output of go list.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard                bool
}

// typed is a package after type checking.
type typed struct {
	dir   string // below the root of the module
	pkg   *types.Package
	info  *types.Info
	fset  *token.FileSet
	files []*ast.File
}

// eachTypedPackage calls f with the packages of eachProductFile.
func eachTypedPackage(t *testing.T, f func(typed)) {
	t.Helper()
	exports, ours := make(map[string]string), []goPackage(nil)
	// The exports are those of the build that is tested: for another one, all packages would be compiled here.
	for _, p := range goPackages(t, os.Environ(), "-export") {
		exports[p.ImportPath] = p.Export
	}
	for _, p := range goPackages(t, append(os.Environ(), "CGO_ENABLED=0")) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if strings.HasPrefix(p.ImportPath, module) && !notProduct(dir) {
			ours = append(ours, p)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range ours {
		f(check(t, fset, imports, p))
	}
}

// goPackages returns what go list says of the packages of the module and all that they need.
func goPackages(t *testing.T, env []string, flags ...string) (list []goPackage) {
	t.Helper()
	args := append([]string{"list", "-deps", "-tags", "nocloud", "-json=ImportPath,Dir,Export,GoFiles,Standard"}, flags...)
	cmd := exec.Command("go", append(args, "./...")...)
	cmd.Dir, cmd.Env, cmd.Stderr = "../../..", env, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal("go list: ", err)
		}
		list = append(list, p)
	}
}

func check(t *testing.T, fset *token.FileSet, imports types.Importer, p goPackage) typed {
	t.Helper()
	of := typed{
		dir:  strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/"),
		fset: fset, info: &types.Info{Uses: make(map[*ast.Ident]types.Object)},
	}
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		of.files = append(of.files, file)
	}
	var err error
	if of.pkg, err = (&types.Config{Importer: imports}).Check(p.ImportPath, fset, of.files, of.info); err != nil {
		t.Fatal(err)
	}
	return of
}

// imports returns the files that each file of the package uses names of: functions, types, their methods and fields.
func (p typed) imports() map[string][]string {
	used := make(map[string]map[string]bool)
	for id, o := range p.info.Uses {
		if o.Pkg() != p.pkg || !o.Pos().IsValid() || local(o) {
			continue
		}
		from, to := p.file(id.Pos()), p.file(o.Pos())
		if from == to {
			continue
		}
		if used[from] == nil {
			used[from] = make(map[string]bool)
		}
		used[from][to] = true
	}
	lists := make(map[string][]string)
	for from, to := range used {
		lists[from] = slices.Sorted(maps.Keys(to))
	}
	return lists
}

func (p typed) file(pos token.Pos) string { return filepath.Base(p.fset.Position(pos).Filename) }

// local reports whether o is known in one function only.
func local(o types.Object) bool {
	switch o := o.(type) {
	case *types.Var:
		return !o.IsField() && o.Parent() != o.Pkg().Scope()
	case *types.Func:
		return false
	}
	return o.Parent() != o.Pkg().Scope()
}

// flow orders the files of a package such that few imports run against the order, and returns these as "file -> file".
// An import from a later file to an earlier one runs with the flow. The order is found by moving one file at a time
// until no move is better, from two beginnings; it can be worse than the best, and never better.
func flow(imports map[string][]string) (arrows int, against []string) {
	names := make(map[string]bool)
	for from, to := range imports {
		names[from] = true
		for _, f := range to {
			names[f] = true
		}
		arrows += len(to)
	}
	order := slices.Sorted(maps.Keys(names))
	byImports := slices.Clone(order)
	slices.SortStableFunc(byImports, func(a, b string) int { return len(imports[a]) - len(imports[b]) })
	for i, begin := range [][]string{order, byImports} {
		if up := backward(imports, settle(imports, begin)); i == 0 || len(up) < len(against) {
			against = up
		}
	}
	return arrows, against
}

func settle(imports map[string][]string, order []string) []string {
	uses := make(map[[2]string]int)
	for from, to := range imports {
		for _, f := range to {
			uses[[2]string{from, f}] = 1
		}
	}
	for moved := true; moved; {
		moved = false
		for i := 0; i < len(order); i++ {
			best, at, name := 0, i, order[i]
			for _, step := range []int{1, -1} { // what is gained by each place, further and further from i
				gain := 0
				for j := i + step; j >= 0 && j < len(order); j += step {
					gain += step * (uses[[2]string{name, order[j]}] - uses[[2]string{order[j], name}])
					if gain > best {
						best, at = gain, j
					}
				}
			}
			if best > 0 {
				order = slices.Insert(slices.Delete(order, i, i+1), at, name)
				moved = true
			}
		}
	}
	return order
}

func backward(imports map[string][]string, order []string) (against []string) {
	at := make(map[string]int)
	for i, name := range order {
		at[name] = i
	}
	for from, to := range imports {
		for _, f := range to {
			if at[from] < at[f] {
				against = append(against, from+" -> "+f)
			}
		}
	}
	slices.Sort(against)
	return against
}

// The files of a package are parts that can be read one after the other.
func TestFlow(t *testing.T) {
	found := make(map[string]bool)
	eachTypedPackage(t, func(p typed) {
		imports := p.imports()
		arrows, against := flow(imports)
		if testing.Verbose() && arrows > 0 {
			t.Logf("%-40s %3d files, %3d imports between them, %2d against the flow", p.dir, len(p.files), arrows, len(against))
		}
		if len(against) <= max(fewAgainst, arrows/tenth) {
			return
		}
		if found[p.dir] = true; tangled[p.dir] == "" {
			t.Errorf("%s: %d of %d imports between its files run against the flow, more than one in %d: %s",
				p.dir, len(against), arrows, tenth, strings.Join(against, ", "))
		}
	})
	unused(t, tangled, found)
}

// A type that a reader can know has few methods, wherever they come from.
func TestMethodSets(t *testing.T) {
	found := make(map[string]bool)
	eachTypedPackage(t, func(p typed) {
		for _, name := range p.pkg.Scope().Names() {
			o, ok := p.pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || o.IsAlias() {
				continue
			}
			of := o.Type()
			if !types.IsInterface(of) {
				of = types.NewPointer(of)
			}
			n := types.NewMethodSet(of).Len()
			if n <= largestMethodSet {
				continue
			}
			what := fmt.Sprintf("%s.%s", p.dir, name)
			if found[what] = true; manyMethods[what] == "" {
				t.Errorf("%s has %d methods, those of embedded types included: more than %d", what, n, largestMethodSet)
			}
		}
	})
	unused(t, manyMethods, found)
}

func unused(t *testing.T, table map[string]string, found map[string]bool) {
	t.Helper()
	for what := range table {
		if !found[what] {
			t.Errorf("%s needs no exception: take it out of the table", what)
		}
	}
}

// The order that is found for a small package is the best one.
func TestFlowOfKnownGraphs(t *testing.T) {
	for _, c := range []struct {
		imports map[string][]string
		arrows  int
		against int
	}{
		{nil, 0, 0},
		{map[string][]string{"a": {"b", "c"}, "b": {"c"}}, 3, 0},
		{map[string][]string{"a": {"b"}, "b": {"a"}}, 2, 1},
		{map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}}, 3, 1},
		{map[string][]string{"a": {"b", "c", "d"}, "b": {"a", "c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"a"}}, 9, 3},
	} {
		if arrows, against := flow(c.imports); arrows != c.arrows || len(against) != c.against {
			t.Errorf("%v: %d arrows, %v against; want %d and %d", c.imports, arrows, against, c.arrows, c.against)
		}
	}
}
