//go:build unix

package feed

import (
	"context"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/sys/usage"
)

// gone are the errors of a connection whose other end has ended.
var gone = []error{syscall.EPIPE, syscall.ECONNRESET}

// closeOnExec keeps a descriptor from programs that feed starts.
func closeOnExec(fd int) { unix.CloseOnExec(fd) }

// watchParent calls ended when the process that has started this one is gone: then another one is its parent. A parent
// in another PID namespace cannot be watched. The time of the parent and its other children is of training, not of
// other programs.
func watchParent(ctx context.Context, ended func(error)) bool {
	const interval = 500 * time.Millisecond
	parent := os.Getppid()
	if parent == 0 {
		return false
	}
	usage.Join(parent)
	go func() {
		for tick := time.NewTicker(interval); ; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
				return
			}
			if os.Getppid() != parent {
				ended(errPeer)
				return
			}
		}
	}()
	return true
}
