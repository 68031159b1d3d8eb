package mmapds

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/testkit/require"
)

// Files with registered filters are opened as they are.
func TestFiltersOfOtherPrograms(t *testing.T) {
	for _, name := range []string{"small-plugins.h5", "small-bits.h5"} {
		ds, err := Open("../internal/hdf5/chunk/testdata/" + name)
		require.NoError(t, err)
		defer ds.Close()
		if _, why, _ := ds.DescribeReads("zstd"); name == "small-plugins.h5" && !strings.Contains(why, "zstd by "+stream.ZstdBackend) {
			t.Errorf("zstd: %q", why)
		}
		for _, spec := range ds.Specs() {
			dst := make([]byte, 2*spec.RecordBytes())
			if err := ds.Gather(t.Context(), spec.Name, []int{19, 3}, dst); err != nil {
				t.Errorf("%s: %v", spec.Name, err)
				continue
			}
			size := spec.DType.Size()
			for k, record := range []int{19, 3} {
				for i := range 30 {
					if got, want := dst[(30*k+i)*size], byte((30*record+i)/4%50); got != want {
						t.Fatalf("%s: element %d of record %d is %d, not %d", spec.Name, i, record, got, want)
					}
				}
			}
		}
	}
}
