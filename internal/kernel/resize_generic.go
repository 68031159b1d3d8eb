//go:build !(amd64 || arm64) || purego

package kernel

// packed is empty where no kernel needs another form of the weights.
type packed struct{}

func (*packed) reset() {}

func (w *Weights) rowsFast(_ []byte, _ int, _ []byte, _, _, _, _, _ int) int { return 0 }

func (w *Weights) columnFast(_, _ []byte, _, _ int) int { return 0 }
