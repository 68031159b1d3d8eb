//go:build !linux

package cputime

import "time"

func processOf(int) (time.Duration, bool) { return 0, false }

func descendants(int, func(int) time.Duration) map[int]time.Duration { return nil }
