package main

import (
	"fmt"
	"math/rand/v2"
)

// augmentation says how images are changed at random for training, so that a few images
// teach as much as many. It is a flag.Value.
type augmentation int

const (
	none   augmentation = iota
	mild                // mirrored, shifted by up to a sixteenth: right for photographs
	strong              // and turned, upside down, in other colors: where only shape matters
)

var augmentations = []string{"none", "mild", "strong"}

// String implements flag.Value.
func (a *augmentation) String() string { return augmentations[*a] }

// Set implements flag.Value.
func (a *augmentation) Set(name string) error {
	for i, n := range augmentations {
		if n == name {
			*a = augmentation(i)
			return nil
		}
	}
	return fmt.Errorf("must be one of %v", augmentations)
}

// placement says from which stored value each value of an image comes: pixel (y, x) of
// channel k is the element rows[y] + cols[x] places after the first element of stored
// channel channels[k].
type placement struct {
	rows, cols, channels []int
	gain                 float32 // of the normalized value
}

func newPlacement(d *images) placement {
	return placement{rows: make([]int, d.height), cols: make([]int, d.width), channels: make([]int, d.channels)}
}

// choose sets the placement of one image of d.
func (p *placement) choose(d *images, a augmentation, r *rand.Rand) {
	p.gain = 1
	for c := range p.channels {
		p.channels[c] = c
	}
	if a == none {
		lay(p.rows, d.steps[1], 0, false)
		lay(p.cols, d.steps[2], 0, false)
		return
	}
	turned := a == strong && d.height == d.width && r.IntN(2) == 1
	rowStep, colStep := d.steps[1], d.steps[2]
	if turned {
		rowStep, colStep = colStep, rowStep
	}
	lay(p.rows, rowStep, shift(r, d.height), a == strong && r.IntN(2) == 1)
	lay(p.cols, colStep, shift(r, d.width), r.IntN(2) == 1)
	if a == strong {
		r.Shuffle(len(p.channels), func(i, j int) { p.channels[i], p.channels[j] = p.channels[j], p.channels[i] })
		p.gain = 0.7 + 0.6*r.Float32()
		if r.IntN(2) == 1 {
			p.gain = -p.gain
		}
	}
}

// shift returns a distance of up to a sixteenth of a side.
func shift(r *rand.Rand, side int) int {
	most := side / 16
	return r.IntN(2*most+1) - most
}

// lay sets places to the places of the elements of a row or column, step apart, shifted by
// some elements and perhaps mirrored. The outermost element is repeated.
func lay(places []int, step, shift int, mirror bool) {
	last := len(places) - 1
	for i := range places {
		from := min(max(i+shift, 0), last)
		if mirror {
			from = last - from
		}
		places[i] = from * step
	}
}
