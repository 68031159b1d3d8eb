package feed

import "github.com/penstock/penstock/loader/expr"

// parsed is an expression of a derived field, for a program that computes it.
type parsed struct {
	Error   string   `json:"error,omitempty"`
	Names   []string `json:"names,omitempty"`   // the fields that it reads
	Columns []int    `json:"columns,omitempty"` // where each comes first, in characters from 1
	Truth   bool     `json:"truth,omitempty"`   // the results are true or false
	Tree    any      `json:"tree,omitempty"`    // see expr.Formula.Tree
}

// formulas says what expressions are, so that no other program parses them.
func formulas(texts []string) []parsed {
	list := make([]parsed, len(texts))
	for i, text := range texts {
		f, err := expr.ParseFormula(text)
		if err != nil {
			list[i].Error = err.Error()
			continue
		}
		list[i] = parsed{Names: f.Names, Columns: f.Columns(), Truth: f.IsTruth(), Tree: f.Tree()}
	}
	return list
}
