//go:build !amd64 || purego

package vec

func prefetch([]byte) {}
