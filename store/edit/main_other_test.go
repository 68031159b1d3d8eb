//go:build !linux

package edit

import "testing"

func main(m *testing.M) int { return m.Run() }
