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

// gone lists the errors of a connection whose other end has closed.
var gone = []error{syscall.EPIPE, syscall.ECONNRESET}

// closeOnExec keeps a descriptor from programs that feed starts: an inherited copy of the
// connection would keep it open after feed has ended.
func closeOnExec(fd int) { unix.CloseOnExec(fd) }

// watchParent calls ended when the process that started this one has ended, which shows by another
// parent. It looks twice a second. A parent in another PID namespace (number 0) cannot be watched.
// usage.Join counts the CPU time of the parent and its children as training, not as other programs'
// work.
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
