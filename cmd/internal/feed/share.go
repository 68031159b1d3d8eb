package feed

import (
	"runtime"

	"github.com/penstock/penstock/internal/sys/rank"
	"github.com/penstock/penstock/internal/sys/usage"
)

// machine returns how many cores this process may use, and how many the machine has; 0 if that is not known.
var machine = func() (mine, all int) {
	_, all = usage.Machine()
	return runtime.NumCPU(), all
}

// localSize returns how many training processes share the cores that this process may use, as their launcher says it in
// the environment. It is 1 if the launcher has bound each to its own cores.
func localSize(lookup rank.Lookup) int {
	n := max(1, rank.Local(lookup))
	if mine, all := machine(); mine*n <= all {
		return 1
	}
	return n
}
