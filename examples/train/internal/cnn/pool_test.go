package cnn

import (
	"fmt"
	"testing"
)

// Of a 3x3 map each quarter takes the middle row and column with it.
func TestPool(t *testing.T) {
	l := pool{size{3, 3, 1}}
	s := l.newState()
	l.forward(s, []float32{
		1, 2, 3,
		4, 5, 6,
		7, 8, 0,
	})
	if got := fmt.Sprint(s.out); got != "[4 8 3 5 4 6 6 8 4.75 8]" {
		t.Error("forward:", got)
	}
	s.dOut = []float32{9, 10, 0, 0, 0, 0, 0, 0, 0, 100}
	dIn := make([]float32, 9)
	l.backward(s, dIn)
	if got := fmt.Sprint(dIn); got != "[1 1 1 1 1 1 1 111 1]" {
		t.Error("backward:", got)
	}
}

// A map of one pixel is in every part.
func TestPoolOfOnePixel(t *testing.T) {
	l := pool{size{1, 1, 2}}
	s := l.newState()
	l.forward(s, []float32{-1, 3})
	for i, v := range s.out {
		if want := []float32{-1, 3}[i%2]; v != want {
			t.Errorf("value %d is %v", i, v)
		}
	}
}
