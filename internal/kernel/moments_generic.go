//go:build !(amd64 || arm64) || purego

package kernel

func (m *Moments) addFast(_ []byte) int { return 0 }
