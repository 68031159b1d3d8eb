//go:build !linux

package cputime

import "time"

func machine() (busy time.Duration, cores int) { return 0, 0 }

func storageRead() int64 { return 0 }
