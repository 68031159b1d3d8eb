package main

import (
	"math/rand/v2"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// input turns batches of stored images into what the network wants: float32, normalized,
// pixel by pixel. It reuses its memory and serves one goroutine.
type input struct {
	d       *images
	scale   []float32 // of each channel
	bias    []float32
	seed    uint64
	augment augmentation

	out   []float32
	place placement
	pcg   rand.PCG
}

func newInput(d *images, scale, bias []float32, batch int) *input {
	return &input{
		d: d, scale: scale, bias: bias,
		out:   make([]float32, batch*d.channels*d.height*d.width),
		place: newPlacement(d),
	}
}

// images returns the images of a batch. They are valid until the next call.
func (p *input) images(b loader.Batch, epoch int) []float32 {
	n := p.d.channels * p.d.height * p.d.width
	view := b.Field(p.d.image.Name)
	for i, record := range b.Indices() {
		// The choices for an image are a function of seed, epoch and record alone, so that no
		// order of work changes them.
		p.pcg.Seed(p.seed+uint64(epoch)<<32, uint64(record))
		p.place.choose(p.d, p.augment, rand.New(&p.pcg))
		dst := p.out[i*n:][:n]
		if view.DType() == tensor.Uint8 {
			fill(p, dst, tensor.As[uint8](view)[i*n:][:n])
		} else {
			fill(p, dst, tensor.As[float32](view)[i*n:][:n])
		}
	}
	return p.out[:b.Len()*n]
}

// fill writes one image, x*scale + bias.
func fill[T uint8 | float32](p *input, dst []float32, src []T) {
	at := 0
	for _, row := range p.place.rows {
		for _, col := range p.place.cols {
			for _, c := range p.place.channels {
				x := float32(src[row+col+c*p.d.steps[0]])
				dst[at] = (x*p.scale[c] + p.bias[c]) * p.place.gain
				at++
			}
		}
	}
}
