package archtest

import (
	"go/ast"
	"testing"
)

const mostFields = 20 // of a struct

// large are the structs that may be larger, with the reason.
var large = map[string]string{
	"loader.Stats":                         "a table of statistics",
	"loader/cuda.driver":                   "a table of the driver's functions",
	"cmd/internal/loadbench.Options":       "a table of options",
	"cmd/internal/loadbench.Result":        "a table of statistics",
	"prepare.Summary":                      "a table of statistics",
	"prepare.Config":                       "a table of options",
	"cmd/internal/preprocess.flags":        "a table of options",
	"cmd/internal/feed.Options":            "a table of options",
	"cmd/internal/inspect/summary.Summary": "a table that is printed as JSON",
	"cmd/internal/inspect/tree.Node":       "a table that is printed as JSON",
}

// A struct with many fields is several.
func TestStructs(t *testing.T) {
	found := make(map[string]bool)
	eachProductFile(t, func(dir string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			of, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := of.Type.(*ast.StructType)
			if name := dir + "." + of.Name.Name; ok && fieldCount(s) > mostFields {
				if found[name] = true; large[name] == "" {
					t.Errorf("%s has %d fields, more than %d", name, fieldCount(s), mostFields)
				}
			}
			return true
		})
	})
	unused(t, large, found)
}

func fieldCount(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}
