package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// plumbing are the packages that show types of internal packages, with the reason.
var plumbing = map[string]string{
	"prepare":                "not carved yet",
	"prepare/source":         "not carved yet",
	"prepare/source/dataset": "not carved yet",
	"prepare/source/hdf5":    "not carved yet",
	"store/hdf5/view":        "Describe is for store/hdf5; users have Encode",
	"store/write":            "parts for the containers of this module; users have the Writers of flat, hdf5 and zarr",
}

// isInternal reports whether users of the module cannot import a package.
func isInternal(path string) bool {
	dir, ours := strings.CutPrefix(path, module+"/")
	return ours && (strings.HasPrefix(dir, "cmd/") || strings.Contains("/"+dir+"/", "/internal/"))
}

// A user can name every type that a public package shows: in signatures, fields and methods. An alias is a name.
func TestPublicSignatures(t *testing.T) {
	named := make(map[string]bool) // types that public packages export aliases of
	shown := make(map[[2]string]string)
	eachTypedPackage(t, func(p typed) {
		if isInternal(p.pkg.Path()) {
			return
		}
		for _, name := range p.pkg.Scope().Names() {
			o := p.pkg.Scope().Lookup(name)
			if !o.Exported() {
				continue
			}
			show := func(name string, of types.Type) {
				for _, hidden := range internalTypes(of) {
					shown[[2]string{p.dir, hidden}] = name
				}
			}
			of, ok := o.(*types.TypeName)
			if !ok {
				show(name, o.Type())
				continue
			}
			show(name, of.Type().Underlying())
			if n, ok := types.Unalias(of.Type()).(*types.Named); ok {
				named[fullName(n)] = true
				for m := range n.Methods() {
					if m.Exported() {
						show(name+"."+m.Name(), m.Type())
					}
				}
			}
		}
	})
	found := make(map[string]bool)
	for at, name := range shown {
		dir, hidden := at[0], at[1]
		if named[hidden] {
			continue
		}
		if found[dir] = true; plumbing[dir] == "" {
			t.Errorf("%s.%s has the type %s, which users cannot name", dir, name, hidden)
		}
	}
	unused(t, plumbing, found)
}

func fullName(n *types.Named) string {
	if n.Obj().Pkg() == nil {
		return n.Obj().Name()
	}
	return n.Obj().Pkg().Path() + "." + n.Obj().Name()
}

// internalTypes returns the types of internal packages that occur in of.
func internalTypes(of types.Type) (list []string) {
	switch of := of.(type) {
	case *types.Alias:
		return internalTypes(types.Unalias(of))
	case *types.Named:
		if o := of.Obj(); o.Pkg() != nil && isInternal(o.Pkg().Path()) {
			return []string{fullName(of)}
		}
		for arg := range of.TypeArgs().Types() {
			list = append(list, internalTypes(arg)...)
		}
	case *types.Map:
		return append(internalTypes(of.Key()), internalTypes(of.Elem())...)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		return internalTypes(of.Elem())
	case *types.Signature:
		return append(internalTypes(of.Params()), internalTypes(of.Results())...)
	case *types.Tuple:
		for v := range of.Variables() {
			list = append(list, internalTypes(v.Type())...)
		}
	case *types.Struct:
		for f := range of.Fields() {
			if f.Exported() {
				list = append(list, internalTypes(f.Type())...)
			}
		}
	case *types.Interface:
		for m := range of.Methods() {
			list = append(list, internalTypes(m.Type())...)
		}
	}
	return list
}

// goPackage is a package in the output of go list.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// typed is a package after type checking.
type typed struct {
	dir string // below the root of the module
	pkg *types.Package
}

// eachTypedPackage calls f with the packages of eachProductFile.
func eachTypedPackage(t *testing.T, f func(typed)) {
	t.Helper()
	exports, ours := make(map[string]string), []goPackage(nil)
	// The exports are those of the build that is tested: for another one, all packages would be compiled here.
	for _, p := range goPackages(t, os.Environ(), "./...", "-export", "-tags", "nocloud,"+os.Getenv("CODECS")) {
		exports[p.ImportPath] = p.Export
	}
	for _, p := range goPackages(t, append(os.Environ(), "CGO_ENABLED=0"), "./...", "-tags", "nocloud") {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if strings.HasPrefix(p.ImportPath, module) && !notProduct(dir) {
			ours = append(ours, p)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" { // a codec in Go, where the build that is tested has one in C
			for _, p := range goPackages(t, os.Environ(), path, "-export") {
				exports[p.ImportPath] = p.Export
			}
		}
		return os.Open(exports[path])
	})
	for _, p := range ours {
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		pkg, err := (&types.Config{Importer: imports}).Check(p.ImportPath, fset, files, nil)
		if err != nil {
			t.Fatal(err)
		}
		f(typed{strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/"), pkg})
	}
}

// goPackages returns what go list says of packages and all that they need.
func goPackages(t *testing.T, env []string, packages string, flags ...string) (list []goPackage) {
	t.Helper()
	args := append([]string{"list", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, flags...)
	cmd := exec.Command("go", append(args, packages)...)
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

func unused(t *testing.T, table map[string]string, found map[string]bool) {
	t.Helper()
	for what := range table {
		if !found[what] {
			t.Errorf("%s needs no exception: take it out of the table", what)
		}
	}
}
