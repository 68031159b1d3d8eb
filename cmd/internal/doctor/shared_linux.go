package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/cmd/internal/cli"
)

// littleShared is less than DataLoaders of PyTorch want, as in a container without --shm-size.
const littleShared = 1 << 30

func sharedMemory() finding {
	var s unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &s); err != nil {
		return finding{Name: "shared memory", Found: "no /dev/shm", Advice: "feed and penstock.DataLoader do not need it; workers of PyTorch's DataLoader do"}
	}
	free := int64(s.Bavail) * s.Bsize
	f := finding{Name: "shared memory", Found: fmt.Sprintf("%s of /dev/shm free", cli.Bytes(free))}
	if free < littleShared {
		f.Advice = "workers of PyTorch's DataLoader may need more (docker run --shm-size=8g); penstock.DataLoader does not"
	}
	return f
}
