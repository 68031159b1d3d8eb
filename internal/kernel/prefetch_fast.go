//go:build (amd64 || arm64) && !purego

package kernel

func prefetch(b []byte) { prefetchLines(&b[0], len(b)) }
