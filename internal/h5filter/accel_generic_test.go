//go:build !amd64 || purego

package h5filter

import "testing"

func eachWay(t *testing.T, f func(t *testing.T)) { t.Run("loops", f) }
