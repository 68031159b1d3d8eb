package main

import (
	"image"
	"math/rand/v2"
)

// All geometry is in integers, so that every CPU draws the same: lengths in sixteenths of a
// pixel, directions as Pythagorean triples.
const unit = 16

// A shape reports whether (x, y), relative to the center and in units, is inside for a
// radius r and a direction.
type shape func(x, y, r int, d direction) bool

// direction is the vector (a, b) of length n.
type direction struct{ a, b, n int }

var directions = []direction{
	{1, 0, 1}, {4, 3, 5}, {3, 4, 5}, {12, 5, 13}, {5, 12, 13}, {15, 8, 17}, {8, 15, 17},
	{24, 7, 25}, {7, 24, 25}, {21, 20, 29}, {0, 1, 1}, {-3, 4, 5}, {-8, 15, 17}, {-21, 20, 29},
	{-4, 3, 5}, {-12, 5, 13},
}

var classes = []struct {
	name  string
	shape shape
}{
	{"circle", circle},
	{"square", square},
	{"stripes", stripes},
	{"triangle", triangle},
}

func circle(x, y, r int, _ direction) bool { return x*x+y*y <= r*r }

func square(x, y, r int, d direction) bool {
	u, v := abs(x*d.a+y*d.b), abs(y*d.a-x*d.b)
	side := r * d.n * 7 / 8
	return u <= side && v <= side
}

// stripes is every other band of a disc.
func stripes(x, y, r int, d direction) bool {
	band := r * 2 / 7 * d.n
	return x*x+y*y <= r*r*5/4 && (x*d.a+y*d.b+64*band)/band%2 == 0
}

// triangle is equilateral, its corners at distance 5/4 r: three half planes at distance
// 5/8 r whose directions are 120 degrees apart (866/1000 is sin 60).
func triangle(x, y, r int, d direction) bool {
	u, v := x*d.a+y*d.b, y*d.a-x*d.b
	edge := r * d.n * 5 / 8
	return u <= edge && -u/2+v*866/1000 <= edge && -u/2-v*866/1000 <= edge
}

func abs(v int) int { return max(v, -v) }

type rgb [3]int

func randomColor(rng *rand.Rand) rgb { return rgb{rng.IntN(256), rng.IntN(256), rng.IntN(256)} }

// contrasting draws colors until one differs enough from all other colors to be seen.
func contrasting(rng *rand.Rand, others ...rgb) rgb {
	for {
		c := randomColor(rng)
		ok := true
		for _, o := range others {
			luma := abs(2*(c[0]-o[0]) + 5*(c[1]-o[1]) + (c[2] - o[2]))
			ok = ok && luma >= 8*48
		}
		if ok {
			return c
		}
	}
}

func mix(a, b rgb, k, n int) rgb {
	for i := range a {
		a[i] += (b[i] - a[i]) * k / n
	}
	return a
}

// picture describes one image.
type picture struct {
	w, h         int
	cx, cy, r    int // in units
	dir          direction
	back0, back1 rgb // of the background's gradient
	ink          rgb
	noise        int
}

func drawPicture(rng *rand.Rand, inside shape) *image.RGBA {
	p := picture{w: 48 + rng.IntN(33), h: 48 + rng.IntN(17), noise: 6 + rng.IntN(22)}
	short := min(p.w, p.h)
	p.r = unit * short * (20 + rng.IntN(14)) / 100
	p.cx = unit*p.w/2 + (rng.IntN(2*unit+1)-unit)*p.w/6
	p.cy = unit*p.h/2 + (rng.IntN(2*unit+1)-unit)*p.h/6
	p.dir = directions[rng.IntN(len(directions))]
	p.back0 = randomColor(rng)
	p.back1 = mix(p.back0, randomColor(rng), 1, 3)
	p.ink = contrasting(rng, p.back0, p.back1)
	return p.paint(rng, inside)
}

func (p *picture) paint(rng *rand.Rand, inside shape) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, p.w, p.h))
	for y := range p.h {
		for x := range p.w {
			c := mix(p.back0, p.back1, x+y, p.w+p.h)
			c = mix(c, p.ink, p.coverage(x, y, inside), 16)
			o := m.PixOffset(x, y)
			for i, v := range c {
				v += rng.IntN(2*p.noise+1) - p.noise
				m.Pix[o+i] = byte(max(0, min(v, 255)))
			}
			m.Pix[o+3] = 255
		}
	}
	return m
}

// coverage returns how many of 16 points of the pixel are inside.
func (p *picture) coverage(px, py int, inside shape) (n int) {
	for i := range 16 {
		x := px*unit + i%4*4 + 2 - p.cx
		y := py*unit + i/4*4 + 2 - p.cy
		if inside(x, y, p.r, p.dir) {
			n++
		}
	}
	return n
}
