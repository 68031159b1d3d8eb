package main

import (
	"math/rand/v2"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// input turns batches of stored images into what the network wants: float32, normalised,
// pixel by pixel. It reuses its memory and serves one goroutine.
type input struct {
	d       *images
	name    string // of the image field
	scale   []float32
	bias    []float32
	seed    uint64
	augment bool

	out    []float32
	rows   []int // where row y of the output comes from
	cols   []int
	random rand.PCG
}

func newInput(d *images, scale, bias []float32, batch int) *input {
	return &input{
		d: d, name: d.image.Name, scale: scale, bias: bias,
		out:  make([]float32, batch*d.channels*d.height*d.width),
		rows: make([]int, d.height), cols: make([]int, d.width),
	}
}

// images returns the images of a batch. They are valid until the next call.
func (p *input) images(b loader.Batch, epoch int) []float32 {
	n := p.d.channels * p.d.height * p.d.width
	view := b.Field(p.name)
	for i, record := range b.Indices() {
		p.place(record, epoch)
		dst := p.out[i*n:][:n]
		if view.DType() == tensor.Uint8 {
			fill(p, dst, tensor.As[uint8](view)[i*n:][:n])
		} else {
			fill(p, dst, tensor.As[float32](view)[i*n:][:n])
		}
	}
	return p.out[:b.Len()*n]
}

// place says which row and column of the stored image each pixel shows: its own, or, to
// learn from, those of the image mirrored and shifted by up to a sixteenth. The choice is
// a function of seed, epoch and record alone, so that no order of work changes it.
func (p *input) place(record, epoch int) {
	mirror, dx, dy := false, 0, 0
	if p.augment {
		p.random.Seed(p.seed+uint64(epoch)<<32, uint64(record))
		r := rand.New(&p.random)
		mirror = r.IntN(2) == 1
		dx, dy = shift(r, p.d.width), shift(r, p.d.height)
	}
	for y := range p.rows {
		p.rows[y] = min(max(y+dy, 0), p.d.height-1) * p.d.steps[1]
	}
	for x := range p.cols {
		from := min(max(x+dx, 0), p.d.width-1)
		if mirror {
			from = p.d.width - 1 - from
		}
		p.cols[x] = from * p.d.steps[2]
	}
}

func shift(r *rand.Rand, side int) int {
	most := side / 16
	return r.IntN(2*most+1) - most
}

// fill writes one image, x*scale + bias.
func fill[T uint8 | float32](p *input, dst []float32, src []T) {
	channels := len(p.scale)
	at := 0
	for _, row := range p.rows {
		for _, col := range p.cols {
			for c := range channels {
				x := float32(src[row+col+c*p.d.steps[0]])
				dst[at] = x*p.scale[c] + p.bias[c]
				at++
			}
		}
	}
}
