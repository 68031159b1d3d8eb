//go:build !linux

package mmapds

import (
	"context"
	"os"
)

// readDirect says that there are no direct reads on this system, and so do the functions below:
// preader.gather then reads through the page cache.
func readDirect(*os.File) error { return errNoDirect }

// directQueue exists on Linux only.
type directQueue struct{ made int }

func newDirectQueue() (*directQueue, error) { return nil, errNoDirect }

func (*directQueue) close() {}

func (*preader) gatherDirect(context.Context, []int, []int, []byte, arrival) error {
	return errNoDirect
}
