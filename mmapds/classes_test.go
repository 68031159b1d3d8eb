package mmapds_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// Datasets in which a number is another class do not make one.
func TestClasses(t *testing.T) {
	of := func(names ...string) *mmapds.Dataset {
		labels := store.NewField("labels", tensor.Int64)
		labels.Classes = names
		s := store.Schema{Fields: []store.Field{labels, store.NewField("x", tensor.Uint8, 2)}}
		return open(t, datasettest.BuildFlat(t, s, flat.Options{}, 3, store.Info{}, func(int, *store.Record) {}))
	}
	one, other := of("cat", "dog"), of("ant", "cat")
	if got := one.Classes("labels"); !slices.Equal(got, []string{"cat", "dog"}) || one.Classes("x") != nil || one.Classes("y") != nil {
		t.Errorf("classes %q, %q and %q", got, one.Classes("x"), one.Classes("y"))
	}
	if _, err := combine.NewConcat(one, of("cat", "dog")); err != nil {
		t.Error(err)
	}
	if _, err := combine.NewConcat(one, other); err == nil || !strings.Contains(err.Error(), `field "labels" has the classes ["ant" "cat"]; source 0 has ["cat" "dog"]`) {
		t.Errorf("error %v", err)
	}
}
