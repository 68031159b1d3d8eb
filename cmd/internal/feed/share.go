package feed

import (
	"runtime"

	"github.com/penstock/penstock/internal/sys/rank"
	"github.com/penstock/penstock/internal/sys/usage"
)

// machine returns the number of cores that this process may use, and of the machine, 0 if that is
// unknown. Tests replace it.
var machine = func() (mine, all int) {
	_, all = usage.Machine()
	return runtime.NumCPU(), all
}

// localSize returns the number of training processes that share the cores of this process, by the
// launcher's environment variables. It is 1 if each has cores of its own: the processes together
// then use no more cores than the machine has.
func localSize(lookup rank.Lookup) int {
	n := max(1, rank.Local(lookup))
	if mine, all := machine(); mine*n <= all {
		return 1
	}
	return n
}
