package write

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// A build that is killed while its folder changes places with an old dataset is done: the old
// one, which is where the build was, must not be taken for a build to continue.
func TestKilledWhileReplacing(t *testing.T) {
	dir := crash.MemoryDir(t)
	dest := filepath.Join(dir, "ds")
	journal := &store.Journal{Resume: true}
	for name, exchanged := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			s, b := begin(t, dest, nil)
			add(t, b, 0, 1100)
			finish(t, s, b)
			require.NoError(t, errors.Join(b.Close(), s.PublishFolder()))
			s, b = begin(t, dest, journal)
			add(t, b, 100, 700)
			require.NoError(t, b.Checkpoint(nil))
			finish(t, s, b)
			require.NoError(t, s.park())
			if exchanged {
				if err := private.Exchange(s.dest.parent, s.dest.stage, s.dest.parent, filepath.Base(dest)); err != nil {
					t.Skip("this system cannot exchange folders")
				}
			}
			if err := errors.Join(b.Close(), s.Release()); err != nil { // here the process would be killed
				t.Fatal(err)
			}
			require.NoError(t, CheckDest(dest, StageOptions{Overwrite: true}))
			s, b = begin(t, dest, journal)
			if got := b.Kept(); got.Resumed == exchanged || !exchanged && got.Records != 600 {
				t.Errorf("kept %+v", got)
			}
			require.NoError(t, errors.Join(b.Close(), s.Release(), os.RemoveAll(StageDir(dest)), os.RemoveAll(dest)))
		})
	}
}
