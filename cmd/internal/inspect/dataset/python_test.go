package dataset

import (
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func TestPythonOfAnOddPath(t *testing.T) {
	d := &store.Dataset{Path: `a%d"b`, Format: "flat", Schema: datasettest.SchemaOf(1, tensor.CHW)}
	layout.Of(d).Columns = layout.Columns(datasettest.SchemaOf(1, tensor.CHW).Specs())
	layout.Of(d).Columns[0].Extents = make([]layout.Extent, 2)
	want := `[np.load("a%%d\"b/images-%05d.npy" % i, mmap_mode="r") for i in range(2)]`
	if got := Python(d, 0, layout.Whole); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIdentifier(t *testing.T) {
	for in, want := range map[string]string{"images": "images", "train/x-1": "train_x_1", "1st": "_1st", "": "_", "ü x": "ü_x"} {
		if got := Identifier(in); got != want {
			t.Errorf("identifier(%q) = %q, want %q", in, got, want)
		}
	}
}
