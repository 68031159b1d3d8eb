package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// literals are the calls that may pass true or false, with the reason.
var literals = map[string]string{
	"cmd/internal/datasetarg NewProgress": "a program that nobody asked to be quiet",
}

// A call says what it asks for: no function of this module is called with true or false. An enum, an option or two
// functions read better.
func TestNoLiteralFlags(t *testing.T) {
	files := make(map[string][]*ast.File)
	walkGo(t, func(name string, src []byte) {
		if first, _, _ := strings.Cut(name, "/"); first == "bench" || first == "examples" {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[path.Dir(name)] = append(files[path.Dir(name)], f)
	})
	functions, methods := flagged(files)
	if len(functions)+len(methods) < 50 {
		t.Fatalf("only %d functions and %d methods take a bool", len(functions), len(methods))
	}
	used := make(map[string]bool)
	for pkg, list := range files {
		for _, f := range list {
			imports := importsOf(f)
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !hasLiteral(call) {
					return true
				}
				name := ""
				switch of := call.Fun.(type) {
				case *ast.Ident:
					if functions[pkg+" "+of.Name] {
						name = of.Name
					}
				case *ast.SelectorExpr:
					from, isPackage := "", false
					if x, ok := of.X.(*ast.Ident); ok {
						from, isPackage = imports[x.Name]
					}
					if isPackage && functions[from+" "+of.Sel.Name] || !isPackage && methods[of.Sel.Name] {
						name = of.Sel.Name
					}
				}
				at := pkg + " " + name
				used[at] = true
				if name != "" && literals[at] == "" {
					t.Errorf("%s: %s is called with true or false; use an enum, an option or two functions", pkg, name)
				}
				return true
			})
		}
	}
	for at := range literals {
		if !used[at] {
			t.Errorf("%s: there is no such call any more", at)
		}
	}
}

// flagged returns the functions, each with its package, and the methods that take a bool.
func flagged(files map[string][]*ast.File) (functions, methods map[string]bool) {
	functions, methods = make(map[string]bool), make(map[string]bool)
	for pkg, list := range files {
		for _, f := range list {
			for _, d := range f.Decls {
				of, ok := d.(*ast.FuncDecl)
				if !ok || !takesBool(of) {
					continue
				}
				if of.Recv != nil {
					methods[of.Name.Name] = true
				} else {
					functions[pkg+" "+of.Name.Name] = true
				}
			}
		}
	}
	return functions, methods
}

func takesBool(of *ast.FuncDecl) bool {
	for _, p := range of.Type.Params.List {
		if id, ok := p.Type.(*ast.Ident); ok && id.Name == "bool" {
			return true
		}
	}
	return false
}

func hasLiteral(call *ast.CallExpr) bool {
	for _, a := range call.Args {
		if id, ok := a.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
			return true
		}
	}
	return false
}

// importsOf returns the packages of the module that a file imports, by name, and "" for all others.
func importsOf(f *ast.File) map[string]string {
	out := make(map[string]string)
	for _, i := range f.Imports {
		full := strings.Trim(i.Path.Value, `"`)
		name := path.Base(full)
		if i.Name != nil {
			name = i.Name.Name
		}
		rel, ours := strings.CutPrefix(full, module+"/")
		if !ours {
			rel = ""
		}
		out[name] = rel
	}
	return out
}
