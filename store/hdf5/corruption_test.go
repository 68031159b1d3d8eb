package hdf5

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/corruption"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// places is at how many bytes of a file TestEveryCorruption flips a bit, at most; .ci/run has more.
var places = flag.Int("places", 60, "bytes of a file in which TestEveryCorruption flips a bit, at most")

// Every corruption of a file of images, of one of ragged fields in splits, and of compressed ones
// (of their chunks, the index of these, all), is found or does no harm. Verify reports
// a file that lost its manifest as one of another program.
func TestEveryCorruption(t *testing.T) { eachContainer(t, testEveryCorruption) }

func testEveryCorruption(t *testing.T) {
	dir := crash.MemoryDir(t)
	ragged := filepath.Join(dir, "ragged", "x.h5")
	makeSplits(t, ragged, 0, 150, Options{Splits: trainVal})
	files := map[string]string{
		"images": buildFile(t, imageSchema(12, 12), 40, 40, store.Info{NormalizeByStatistics: true}), "ragged": ragged,
	}
	for _, name := range []string{"plain", "shuffle"} {
		c := compressions[name]
		files[packedKind+name] = filepath.Join(dir, name, "x.h5")
		buildPacked(t, files[packedKind+name], 0, 40, Options{Splits: trainVal, Compress: &c})
	}
	for name, path := range files {
		trials := corruption.NewTrials(t, path)
		trials.Unchecked = true
		good := read(t, path)
		for done, data := range corruption.Done(good, max(29, len(good) / *places), 15) {
			bad := filepath.Join(dir, "bad.h5")
			os.Remove(bad)
			require.NoError(t, os.WriteFile(bad, data, 0o666))
			trials.Judge(t, bad, name+": "+done)
		}
		t.Logf("%s: %d bytes", name, len(good))
		trials.End(t)
	}
}
