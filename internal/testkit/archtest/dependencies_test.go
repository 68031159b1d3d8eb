package archtest

import (
	"os"
	"regexp"
	"testing"
)

// Every direct dependency of the module has its reason in a comment of go.mod.
func TestDependenciesHaveReasons(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	required := regexp.MustCompile(`(?m)^(?:require )?\t?([\w./-]+\.[\w./-]+) v\S+(?: // (.+))?$`).FindAllSubmatch(mod, -1)
	if len(required) < 5 {
		t.Fatalf("only %d dependencies found in go.mod", len(required))
	}
	for _, m := range required {
		if len(m[2]) == 0 {
			t.Errorf("%s has no reason in go.mod", m[1])
		}
	}
}
