package archtest

import (
	"os"
	"regexp"
	"testing"
)

// Every direct dependency of the module has its reason in docs/security.md, and no other module has one.
func TestDependenciesHaveReasons(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^(?:require )?\t?([\w./-]+\.[\w./-]+) v\S+$`).FindAllSubmatch(mod, -1) {
		direct[string(m[1])] = true
	}
	if len(direct) < 5 {
		t.Fatalf("only %d dependencies found in go.mod", len(direct))
	}
	listed := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `([^` ]+)`(?: \\*)? \\| .+ \\|$").FindAllSubmatch(page, -1) {
		listed[string(m[1])] = true
	}
	for m := range direct {
		if !listed[m] {
			t.Errorf("%s has no reason in docs/security.md", m)
		}
	}
	for m := range listed {
		if !direct[m] {
			t.Errorf("%s is in docs/security.md and not in go.mod", m)
		}
	}
}
