//go:build !(amd64 || arm64) || purego

package vec

func prefetch([]byte) {}
