//go:build !linux

package usage

import "time"

func ownMachine() (busy time.Duration, cores int) { return 0, 0 }

func storageRead() int64 { return 0 }
