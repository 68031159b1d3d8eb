//go:build !unix

package decode

import "testing"

func guarded[T uint8 | uint16 | int16](_ testing.TB, n int) []T { return make([]T, n) }
