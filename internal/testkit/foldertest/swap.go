package foldertest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// SwapForLink swaps the folder name, whenever it exists, for a link to target and back, as another user of its
// parent might, and counts how often, until stop is called.
func SwapForLink(name, target string) (swaps *atomic.Int64, stop func()) {
	aside := filepath.Join(filepath.Dir(name), "aside")
	swaps = new(atomic.Int64)
	var attack sync.WaitGroup
	var ended atomic.Bool
	attack.Go(func() {
		for !ended.Load() {
			n := swaps.Load()
			if os.Rename(name, aside) == nil {
				_ = os.Symlink(target, name)
				time.Sleep(time.Duration(n%7) * 50 * time.Microsecond)
				_ = errors.Join(os.Remove(name), os.Rename(aside, name))
				n = swaps.Add(1)
			}
			_ = os.RemoveAll(aside)
			// always, to see other moments if there is one CPU
			time.Sleep(time.Duration(1+n%11) * 50 * time.Microsecond)
		}
	})
	return swaps, func() { ended.Store(true); attack.Wait() }
}
