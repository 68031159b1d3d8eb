//go:build !amd64 || purego

package filter

import "testing"

func eachWay(t *testing.T, f func(t *testing.T)) { t.Run("loops", f) }
