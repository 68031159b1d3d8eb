package doctor

import (
	"fmt"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/units"
)

// littleShared is the free space of /dev/shm below which doctor gives advice. Workers of PyTorch's
// DataLoader pass batches through /dev/shm, and a container without --shm-size has 64 MiB of it.
const littleShared = 1 << 30

// sharedMemory reports the free space of /dev/shm.
func sharedMemory() finding {
	free, known := usage.FreeSpace("/dev/shm")
	if !known {
		return finding{Name: "shared memory", Found: "no /dev/shm",
			Advice: "feed and penstock.DataLoader do not need it; workers of PyTorch's DataLoader do"}
	}
	f := finding{Name: "shared memory", Found: fmt.Sprintf("%s of /dev/shm free", units.Bytes(free))}
	if free < littleShared {
		f.Advice = "workers of PyTorch's DataLoader may need more (docker run --shm-size=8g); penstock.DataLoader does not"
	}
	return f
}
