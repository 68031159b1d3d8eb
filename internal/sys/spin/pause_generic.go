//go:build !(amd64 || arm64) || purego

package spin

func pause(uint32) {}
