package cnn

import (
	"math"
	"math/rand/v2"
)

// dense is the last layer: a score for each class.
type dense struct {
	in, out int
	weight  []float32 // in x out
	bias    []float32 // out
}

func newDense(rng *rand.Rand, in, out int) *dense {
	return &dense{in: in, out: out, weight: random(rng, in*out, in), bias: make([]float32, out)}
}

func (l *dense) forward(scores, in []float32) {
	copy(scores, l.bias)
	addProduct(scores, in, l.weight, 1, l.out, l.in, l.in, 1)
}

// backward takes the gradient of the scores, adds to the gradients of weight and bias, and
// sets dIn.
func (l *dense) backward(dScores, in, dWeight, dBias, dIn []float32) {
	addRow(dBias, 1, dScores)
	for i, x := range in {
		row := l.weight[i*l.out:][:l.out]
		sum := float32(0)
		for j, d := range dScores {
			sum += d * row[j]
			dWeight[i*l.out+j] += x * d
		}
		dIn[i] = sum
	}
}

// softmaxLoss returns the cross-entropy of the scores for the right class, turns scores
// into its gradient by them, and says whether that class had the highest score.
func softmaxLoss(scores []float32, label int) (loss float64, right bool) {
	best := 0
	for i, s := range scores {
		if s > scores[best] {
			best = i
		}
	}
	top, sum := float64(scores[best]), 0.0
	for _, s := range scores {
		sum += math.Exp(float64(s) - top)
	}
	loss = math.Log(sum) + top - float64(scores[label])
	for i, s := range scores {
		scores[i] = float32(math.Exp(float64(s)-top) / sum)
	}
	scores[label]--
	return loss, best == label
}
