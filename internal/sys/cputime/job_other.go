//go:build !linux

package cputime

import "time"

func processOf(int) (time.Duration, bool) { return 0, false }

func descendants(int) []int { return nil }
