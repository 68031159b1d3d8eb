//go:build !(amd64 || arm64) || purego

package kernel

func planesFast(_, _, _, _ []byte, _ int) int      { return 0 }
func interleaveFast(_, _, _, _ []byte) int         { return 0 }
func packFast(_, _ []byte, _ int) int              { return 0 }
func reverseFast(_, _ []byte) int                  { return 0 }
func reverseRowsFast(_, _ []byte, _, _, _ int) int { return 0 }
func reverse3Fast(_, _ []byte, _ int) int          { return 0 }
func grayFast(_, _ []byte, _ int) int              { return 0 }
