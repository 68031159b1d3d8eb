package cnn

import "math"

// adam is the optimizer of Kingma and Ba, "Adam" (2015), algorithm 1, with the decoupled
// weight decay of Loshchilov and Hutter (2019).
type adam struct {
	mean, square [][]float32
	steps        int
}

const (
	beta1 = 0.9
	beta2 = 0.999
	decay = 0.02
)

// step moves the parameters against their gradients.
func (o *adam) step(params, grads [][]float32, rate float64) {
	o.steps++
	unbiased := math.Sqrt(1-math.Pow(beta2, float64(o.steps))) / (1 - math.Pow(beta1, float64(o.steps)))
	scale, keep := float32(rate*unbiased), float32(1-rate*decay)
	for i, p := range params {
		m, v := o.mean[i], o.square[i]
		for j, g := range grads[i] {
			m[j] = beta1*m[j] + (1-beta1)*g
			v[j] = beta2*v[j] + (1-beta2)*g*g
			p[j] = keep*p[j] - scale*m[j]/(float32(math.Sqrt(float64(v[j])))+1e-8)
		}
	}
}
