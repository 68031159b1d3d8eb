package archtest

import (
	"go/ast"
	"os"
	"testing"
)

const (
	mostFiles    = 30 // of a package, without tests
	mostMethods  = 40 // of a type
	mostFields   = 20 // of a struct
	mostInternal = 12 // entries of internal/
)

// large are the packages and structs that may be larger, with the reason.
var large = map[string]string{
	"internal/kernel":                      "a file for each kernel and processor",
	"internal/hdf5/meta":                   "a file for each message and index of HDF5",
	"loader.Stats":                         "a table of statistics",
	"loader/cuda.driver":                   "a table of the driver's functions",
	"cmd/internal/loadbench.Options":       "a table of options",
	"cmd/internal/loadbench.Result":        "a table of statistics",
	"cmd/internal/preprocess.Summary":      "a table of statistics",
	"cmd/internal/preprocess.flags":        "a table of options",
	"cmd/internal/inspect/summary.Summary": "a table that is printed as JSON",
	"cmd/internal/inspect/tree.Node":       "a table that is printed as JSON",
}

// A reader finds his way in a house whose rooms are small.
func TestSizes(t *testing.T) {
	files, methods, found := make(map[string]int), make(map[string]map[string]bool), make(map[string]bool)
	check := func(what string, n, most int, of string) {
		if n <= most {
			return
		}
		if found[what] = true; large[what] == "" {
			t.Errorf("%s has %d %s, more than %d", what, n, of, most)
		}
	}
	eachProductFile(t, func(dir string, file *ast.File) {
		files[dir]++
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					break
				}
				of := dir + "." + receiver(n.Recv.List[0].Type)
				if methods[of] == nil {
					methods[of] = make(map[string]bool)
				}
				methods[of][n.Name.Name] = true
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					check(dir+"."+n.Name.Name, fieldCount(s), mostFields, "fields")
				}
			}
			return true
		})
	})
	for dir, n := range files {
		check(dir, n, mostFiles, "files")
	}
	for name, set := range methods {
		check(name, len(set), mostMethods, "methods")
	}
	for what := range large {
		if !found[what] {
			t.Errorf("%s is small enough: take it out of the table", what)
		}
	}
	entries, err := os.ReadDir("../../../internal")
	if err != nil || len(entries) > mostInternal {
		t.Errorf("internal/ has %d entries, more than %d (%v)", len(entries), mostInternal, err)
	}
}

func fieldCount(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}
