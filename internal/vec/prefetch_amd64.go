//go:build !purego

package vec

func prefetch(b []byte) { prefetchLines(&b[0], len(b)) }
