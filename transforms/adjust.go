package transforms

import (
	"math"

	"github.com/penstock/penstock/internal/kernel"
)

// The functions of this file change colors as Pillow's ImageEnhance and ImageOps do, byte
// for byte; torchvision calls these functions for PIL images.

// lut maps each byte of a channel.
type lut [256]byte

// apply maps every byte of pix in place.
func (t *lut) apply(pix []byte) {
	for i, v := range pix {
		pix[i] = t[v]
	}
}

// blend is Pillow's Image.blend of one byte: factor 0 gives a, 1 gives b, and factors outside of 0
// to 1 extrapolate. The inner product is converted to float32 on its own, which forbids the
// compiler to fuse it with the addition: a fused operation would round differently from Pillow.
func blend(a, b int, factor float32) byte {
	v := float32(a) + float32(factor*float32(b-a))
	return byte(min(max(v, 0), 255))
}

// brightness blends the image with black. Its inputs are 256 levels, so that a table serves all
// pixels.
func brightness(m, _ *Image, args OpArgs) {
	toward(0, float32(args[0])).apply(m.Pix)
}

// contrast blends the image with a uniform image of its mean gray. The mean is rounded to a whole
// level first, as Pillow does.
func contrast(m, other *Image, args OpArgs) {
	gray := m.Pix
	if m.C == 3 {
		other.Reshape(m.W, m.H, 1)
		kernel.Gray(other.Pix, m.Pix, 3)
		gray = other.Pix
	}
	var sum kernel.Moments
	sum.Add(gray)
	mean := int(float64(sum.Sum)/float64(sum.N) + 0.5)
	toward(mean, float32(args[0])).apply(m.Pix)
}

// toward returns the table that blends every level with one fixed level.
func toward(level int, factor float32) *lut {
	var t lut
	for x := range t {
		t[x] = blend(level, x, factor)
	}
	return &t
}

// saturation blends each pixel with its own gray value.
func saturation(m, _ *Image, args OpArgs) {
	if m.C != 3 {
		return
	}
	f := float32(args[0])
	for i := 0; i < len(m.Pix); i += 3 {
		p := m.Pix[i:][:3]
		gray := int(luma(p[0], p[1], p[2]))
		for c, v := range p {
			p[c] = blend(gray, int(v), f)
		}
	}
}

// luma is kernel.Gray of one pixel.
func luma(r, g, b byte) byte {
	return byte((19595*uint32(r) + 38470*uint32(g) + 7471*uint32(b) + 1<<15) >> 16)
}

// sharpness blends the image with a copy smoothed by the kernel (1 1 1, 1 5 1, 1 1 1)/13. Pixels at
// the edge have no full neighborhood, and stay as they are, as in Pillow.
func sharpness(m, other *Image, args OpArgs) {
	f := float32(args[0])
	other.Reshape(m.W, m.H, m.C)
	copy(other.Pix, m.Pix)
	for y := 1; y < m.H-1; y++ {
		above, here, below := m.Row(y-1), m.Row(y), m.Row(y+1)
		out := other.Row(y)
		for i := m.C; i < len(here)-m.C; i++ {
			l, r := i-m.C, i+m.C
			sum := int(above[l]) + int(above[i]) + int(above[r]) + int(here[l]) + 5*int(here[i]) + int(here[r]) +
				int(below[l]) + int(below[i]) + int(below[r])
			out[i] = blend((2*sum+13)/26, int(here[i]), f)
		}
	}
	*m, *other = *other, *m
}

// hue turns the hue of each pixel by args[0] of a whole turn. The sum of two bytes wraps around,
// as hues do.
func hue(m, _ *Image, args OpArgs) {
	if m.C != 3 {
		return
	}
	turn := byte(int(args[0] * 255))
	for i := 0; i < len(m.Pix); i += 3 {
		p := m.Pix[i:][:3]
		h, s, v := toHSV(p[0], p[1], p[2])
		p[0], p[1], p[2] = fromHSV(h+turn, s, v)
	}
}

// toHSV is Pillow's rgb2hsv_row, with Pillow's mixture of single and double precision: other
// precision gives other bytes for some colors.
func toHSV(r, g, b byte) (h, s, v byte) {
	most, least := max(r, g, b), min(r, g, b)
	if most == least {
		return 0, 0, most
	}
	span := float32(most - least)
	rc, gc, bc := float32(most-r)/span, float32(most-g)/span, float32(most-b)/span
	var at float32
	switch most {
	case r:
		at = bc - gc
	case g:
		at = float32(2 + float64(rc) - float64(bc))
	default:
		at = float32(4 + float64(gc) - float64(rc))
	}
	at = float32(math.Mod(float64(at)/6+1, 1))
	return byte(int(float64(at) * 255)), byte(int(float64(span/float32(most)) * 255)), most
}

// fromHSV is Pillow's hsv2rgb.
func fromHSV(h, s, v byte) (r, g, b byte) {
	if s == 0 {
		return v, v, v
	}
	sector := math.Floor(float64(float32(h)) * 6 / 255)
	f := float32(float64(h)*6/255 - sector)
	fs := float32(float64(s) / 255)
	part := func(x float64) byte { return byte(min(max(math.Round(x), 0), 255)) }
	p := part(float64(v) * (1 - float64(fs)))
	q := part(float64(v) * (1 - float64(fs*f)))
	t := part(float64(v) * (1 - float64(float64(fs)*(1-float64(f)))))
	switch int(sector) % 6 {
	case 0:
		return v, t, p
	case 1:
		return q, v, p
	case 2:
		return p, v, t
	case 3:
		return p, q, v
	case 4:
		return t, p, v
	}
	return v, p, q
}

// invert replaces each level x by 255 - x.
func invert(m, _ *Image, _ OpArgs) {
	for i, v := range m.Pix {
		m.Pix[i] = 255 - v
	}
}

// posterize keeps the upper args[0] bits of each byte and clears the others.
func posterize(m, _ *Image, args OpArgs) {
	mask := byte(0xff) << (8 - int(args[0]))
	for i, v := range m.Pix {
		m.Pix[i] = v & mask
	}
}

// solarize inverts all levels from args[0] upwards.
func solarize(m, _ *Image, args OpArgs) {
	for i, v := range m.Pix {
		if float64(v) >= args[0] {
			m.Pix[i] = 255 - v
		}
	}
}

// autocontrast stretches the levels of each channel to the range 0 to 255. A channel of one level
// stays as it is.
func autocontrast(m, _ *Image, _ OpArgs) {
	eachChannel(m, func(h [256]int) (t lut, use bool) {
		lo, hi := 0, 255
		for lo < 255 && h[lo] == 0 {
			lo++
		}
		for hi > 0 && h[hi] == 0 {
			hi--
		}
		if hi <= lo {
			return t, false
		}
		scale := 255 / float64(hi-lo)
		offset := float64(-float64(lo) * scale)
		for x := range t {
			t[x] = byte(min(max(int(float64(float64(x)*scale)+offset), 0), 255))
		}
		return t, true
	})
}

// equalize makes the histogram of each channel nearly flat. The step leaves out the pixels of the
// brightest used level, as Pillow does.
func equalize(m, _ *Image, _ OpArgs) {
	eachChannel(m, func(h [256]int) (t lut, use bool) {
		total, last, levels := 0, 0, 0
		for _, n := range h {
			if n > 0 {
				total, last, levels = total+n, n, levels+1
			}
		}
		step := (total - last) / 255
		if levels <= 1 || step == 0 {
			return t, false
		}
		n := step / 2
		for x := range t {
			t[x] = byte(min(n/step, 255))
			n += h[x]
		}
		return t, true
	})
}

// eachChannel maps each channel by a table that f computes from the channel's histogram. f returns
// false if the channel should stay as it is.
func eachChannel(m *Image, f func(histogram [256]int) (t lut, use bool)) {
	for c := range m.C {
		var h [256]int
		for i := c; i < len(m.Pix); i += m.C {
			h[m.Pix[i]]++
		}
		t, use := f(h)
		if !use {
			continue
		}
		for i := c; i < len(m.Pix); i += m.C {
			m.Pix[i] = t[m.Pix[i]]
		}
	}
}
