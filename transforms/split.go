package transforms

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// someSizes are widths and heights of photographs, wide, tall, large and small, for which a head
// must make one size.
var someSizes = [][2]int{{500, 375}, {375, 500}, {1920, 1080}, {4000, 3000}, {61, 67}}

// Split divides a pipeline of image files into a head and a tail. The head draws nothing at random,
// and makes RGB or gray bytes of one size from images of any size, in layout HWC: its results can
// be stored once and read in every epoch. The tail has the other transforms. Head and tail, one
// after the other, make the same record as p, to the byte.
//
// The error says why there is no head: p begins with a random transform, or sizes differ before the
// first random one.
func (p *Pipeline) Split() (head, tail *Pipeline, err error) {
	n, fixed := 0, p.fixed()
	for i := range fixed + 1 {
		if makesOneSize(p.ts[:i]) {
			n = i
		}
	}
	if n == 0 {
		return nil, nil, p.noHead(fixed)
	}
	var before, after []Transform
	after = append(after, ToLayout{Layout: HWC}) // which records of files have, unless a transform says another
	for _, t := range p.ts[:n] {
		if _, ok := t.(ToLayout); ok {
			after = append(after, t)
		} else {
			before = append(before, t)
		}
	}
	head, err = Compose(before...)
	if err != nil {
		return nil, nil, err
	}
	tail, err = Compose(append(after, p.ts[n:]...)...)
	return head, tail, err
}

// fixed returns the number of transforms before the first random one.
func (p *Pipeline) fixed() int {
	for i, t := range p.ts {
		if _, ok := t.(Randomized); ok {
			return i
		}
	}
	return len(p.ts)
}

// makesOneSize reports whether transforms that are not random make bytes of one size from all
// images that they accept.
func makesOneSize(ts []Transform) bool {
	p := Pipeline{ts: ts}
	var first Info
	for _, size := range someSizes {
		out, err := p.Output(Info{W: size[0], H: size[1], C: 3})
		switch {
		case err != nil:
		case out.DType != tensor.Uint8:
			return false
		case first == Info{}:
			first = out
		case first != out:
			return false
		}
	}
	return first != Info{}
}

// noHead returns why the transforms before the first random one do not make one size.
func (p *Pipeline) noHead(fixed int) error {
	if fixed == len(p.ts) {
		return errors.New("its images have several sizes; add a Resize to height and width, or a CenterCrop")
	}
	name := opName(p.ts[fixed])
	if fixed == 0 {
		return fmt.Errorf("the pipeline begins with %s, which draws at random; put a Resize to height and width, or a "+
			"CenterCrop, before it", name)
	}
	return fmt.Errorf("images have several sizes before %s, the first transform that draws at random; put a Resize to "+
		"height and width, or a CenterCrop, before it", name)
}
