package prepare

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/view"
)

// A view has no records of its own; the error says where they are.
func TestViewIsNoSource(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	c.View = true
	mustRun(t, c)
	view := config(t, filepath.Join(c.Dest, view.Name))
	view.Images.Resize, view.Images.Crop = nil, nil
	for _, view.From = range []string{"auto", "hdf5"} {
		_, err := Run(context.Background(), view, &rawtest.Silent{})
		if !errors.Is(err, store.ErrView) || !strings.HasSuffix(err.Error(), "open the dataset instead: "+c.Dest) || strings.Count(err.Error(), view.Source) != 1 {
			t.Errorf("--from %s: error %v", view.From, err)
		}
		rawtest.CheckNothing(t, view.Dest)
	}
}
