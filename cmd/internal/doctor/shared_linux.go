package doctor

import (
	"fmt"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/units"
)

// littleShared is less than DataLoaders of PyTorch want, as in a container without --shm-size.
const littleShared = 1 << 30

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
