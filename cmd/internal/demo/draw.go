package demo

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/sys/private"
)

// The images: perClass of each class, drawn at twice the side that they are trained at.
const (
	perClass = 300
	side     = 16
	drawn    = 2 * side
)

// class is a shape: whether a point is in it, relative to its center, in units of its radius.
type class struct {
	name   string
	inside func(x, y float64) bool
}

var classes = []class{
	{"circle", func(x, y float64) bool { return x*x+y*y < 1 }},
	{"cross", func(x, y float64) bool { return x > -.35 && x < .35 || y > -.35 && y < .35 }},
	{"square", func(x, y float64) bool { return true }},
	{"triangle", func(x, y float64) bool { return y > 2*x-1 && y > -2*x-1 }},
}

// draw writes the images as folder/CLASS/NUMBER.png, the same ones every time. The folder must be this user's own
// and no link, since its usual name is known to all.
func draw(folder string) error {
	top, err := openFolder(folder)
	if err != nil {
		return err
	}
	defer top.Close()
	for c := range classes {
		if err := drawClass(top, c); err != nil {
			return err
		}
	}
	return nil
}

// openFolder makes the folder PATH/raw, where it is not there, and opens it.
func openFolder(folder string) (*os.Root, error) {
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(filepath.Clean(folder))), 0o777); err != nil {
		return nil, err
	}
	parent, name, err := private.Parent(filepath.Dir(folder))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	demo, err := private.Make(parent, name)
	if err != nil {
		return nil, err
	}
	defer demo.Close()
	return private.Make(demo, filepath.Base(folder))
}

func drawClass(top *os.Root, c int) error {
	folder, err := private.Make(top, classes[c].name)
	if err != nil {
		return err
	}
	defer folder.Close()
	for i := range perClass {
		rng := rand.New(rand.NewPCG(uint64(c), uint64(i)))
		if err := write(folder, fmt.Sprintf("%04d.png", i), picture(&classes[c], rng)); err != nil {
			return err
		}
	}
	return nil
}

// picture draws a shape of some color, place and size on a ground of another, lighter or darker.
func picture(c *class, rng *rand.Rand) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, drawn, drawn))
	tone := func(from int) color.RGBA {
		return color.RGBA{uint8(from + rng.IntN(80)), uint8(from + rng.IntN(80)), uint8(from + rng.IntN(80)), 255}
	}
	ground, paint := tone(170), tone(10)
	if rng.IntN(2) == 0 {
		ground, paint = paint, ground
	}
	r := drawn * (0.22 + 0.13*rng.Float64())
	cx, cy := drawn/2+10*rng.Float64()-5, drawn/2+10*rng.Float64()-5
	for y := range drawn {
		for x := range drawn {
			dx, dy := (float64(x)+.5-cx)/r, (float64(y)+.5-cy)/r
			if dx > -1 && dx < 1 && dy > -1 && dy < 1 && c.inside(dx, dy) {
				m.SetRGBA(x, y, paint)
			} else {
				m.SetRGBA(x, y, ground)
			}
		}
	}
	return m
}

func write(folder *os.Root, name string, m image.Image) error {
	f, err := private.Create(folder, name, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, m), f.Close())
}
