package prepare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store/edit"
)

// A dataset in a bucket is read in the generation that its URL names, or in the newest one, also if its writer was
// killed before the file in the folder was replaced.
func TestGenerationsOfABucketAreSources(t *testing.T) {
	for name, newest := range map[string]string{"ds": layout.ManifestName, "ds.zarr": layout.ZarrManifest} {
		t.Run(name, func(t *testing.T) {
			base := config(t, rawtest.Folder(t, 12))
			base.Dest = filepath.Join(t.TempDir(), name)
			mustRun(t, base)
			first, err := os.ReadFile(filepath.Join(base.Dest, newest))
			require.NoError(t, err)
			if _, err := edit.At(base.Dest).RenameColumn("labels", "kinds", edit.Options{}); err != nil {
				t.Fatal(err)
			}
			require.NoError(t, edit.At(base.Dest).Tag("begin", 1))
			b := useBucket(t, base.Dest)
			b.Put(name+"/"+filepath.ToSlash(newest), first)
			for generation, want := range map[string]string{"": "kinds", "@2": "kinds", "@1": "labels", "@begin": "labels"} {
				c := config(t, urlOf(name+generation))
				c.Images.Resize, c.Images.Crop, c.Spool = nil, nil, t.TempDir()
				if got := mustRun(t, c).Fields; len(got) < 2 || got[1].Name != want {
					t.Errorf("%q: %+v, want %s", generation, got, want)
				}
			}
			c := config(t, urlOf(name+"@9"))
			c.Images.Resize, c.Images.Crop = nil, nil
			if _, err := Run(t.Context(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "it keeps no generation 9") ||
				strings.Contains(err.Error(), "hush") {
				t.Errorf("error %v", err)
			}
		})
	}
}
