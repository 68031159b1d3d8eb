package loader_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/combine"
)

// classed is a memory whose field has names for its values.
type classed struct {
	*memory
	names []string
}

func (c classed) Classes(field string) []string {
	if field != "x" {
		return nil
	}
	return c.names
}

// Sources whose numbers mean other classes do not make one, also where a source between them declares none.
func TestJoinedClasses(t *testing.T) {
	of := func(names ...string) classed { return classed{newMemorySource(3, 1), names} }
	plain := newMemorySource(3, 1)
	for _, c := range []struct {
		second classed
		want   string
	}{
		{of("dog", "cat"), `source 2: field "x" has the classes ["dog" "cat"]; source 0 has ["cat" "dog"], so that a number is not the same class`},
		{of("cat", "dog", "eel"), `["cat" "dog" "eel"]; source 0 has ["cat" "dog"]`},
		{of(), `the classes [] (none); source 0 has`},
		{of("a", "b", "c", "d", "e", "f", "g"), `["a" "b" "c" "d" "e"] and 2 more;`},
	} {
		if _, err := combine.NewConcat(of("cat", "dog"), plain, c.second); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	inner, err := combine.NewConcat(plain, of("cat", "dog"))
	require.NoError(t, err)
	if got := inner.Classes("x"); !slices.Equal(got, []string{"cat", "dog"}) || inner.Classes("y") != nil {
		t.Errorf("classes %q and %q", got, inner.Classes("y"))
	}
	if _, err := combine.NewConcat(of("cat", "dog"), inner); err != nil {
		t.Error(err)
	}
	if _, err := combine.NewConcat(of("dog", "cat"), inner); err == nil {
		t.Error("a Concat hides the classes of its sources")
	}
	if both, err := combine.NewConcat(plain, plain); err != nil || both.Classes("x") != nil {
		t.Errorf("classes of none: %v", err)
	}
}
