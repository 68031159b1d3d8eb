package feed

import (
	"encoding/json"
	"testing"
)

// TestFormulas writes trees of expressions for another program, and errors in their places.
func TestFormulas(t *testing.T) {
	out, err := json.Marshal(formulas([]string{"-x ** 2 + inf", "é +\n`a b` in (true, 1)", "x +"}))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"names":["x"],"columns":[2],"tree":["+",["negate",["**",{"field":"x"},2]],"inf"]},` +
		`{"names":["é","a b"],"columns":[1,5],"truth":true,"tree":["in",["+",{"field":"é"},{"field":"a b"}],true,1]},` +
		`{"error":"column 4: a value was expected, not the end\n  x +\n     ^"}]`
	if string(out) != want {
		t.Errorf("%s, want %s", out, want)
	}
}
