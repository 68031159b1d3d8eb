package demo

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/sys/shell"
)

// perClass images are drawn of each class, drawn pixels wide and high. They are trained at side
// pixels, so preprocess has something to resize.
const (
	perClass = 300
	side     = 16
	drawn    = 2 * side
)

// class is a shape. inside reports whether a point is in the shape; the point is relative to the
// shape's center, in units of its radius, so both coordinates are in (-1, 1).
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

// made is the name of the file that marks a folder as a demo's.
const made = ".penstock-demo"

// draw writes the images as folder/raw/CLASS/NUMBER.png, the same bytes in every run. The folder
// must be new, empty or an earlier demo's, must belong to this user and must not be a link: its
// default name is known to all users of the machine, so another user could have put a link there
// that leads demo to overwrite files. All files are therefore made through open folders of package
// private.
func draw(folder string) error {
	folder = filepath.Clean(folder)
	if err := os.MkdirAll(filepath.Dir(folder), 0o777); err != nil {
		return err
	}
	parent, name, err := private.Parent(folder)
	if err != nil {
		return err
	}
	defer parent.Close()
	demo, err := private.Make(parent, name)
	if err != nil {
		return err
	}
	defer demo.Close()
	if err := claim(demo, folder); err != nil {
		return err
	}
	top, err := private.Make(demo, "raw")
	if err != nil {
		return err
	}
	defer top.Close()
	entries, err := private.Entries(top)
	if err != nil {
		return err
	}
	for _, name := range entries {
		if !slices.ContainsFunc(classes, func(c class) bool { return c.name == name }) {
			return refused(folder, filepath.Join("raw", name))
		}
	}
	for c := range classes {
		if err := drawClass(top, c); err != nil {
			return err
		}
	}
	return nil
}

// claim marks an empty folder as a demo's, and refuses a folder that has files but no mark.
func claim(demo *os.Root, folder string) error {
	entries, err := private.Entries(demo)
	if err != nil || slices.Contains(entries, made) {
		return err
	}
	if len(entries) > 0 {
		return refused(folder, entries[0])
	}
	f, err := private.Create(demo, made, 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}

// refused returns the error for a folder with files that no demo made. It proposes a folder that
// does not exist, by a command that works as typed.
func refused(folder, name string) error {
	other := folder + "-2"
	for n := 3; ; n++ {
		if _, err := os.Lstat(other); errors.Is(err, fs.ErrNotExist) {
			break
		}
		other = fmt.Sprintf("%s-%d", folder, n)
	}
	return fmt.Errorf("%s: %s is not of a demo, and a demo overwrites files; name a new folder: %s", folder, name,
		shell.On("demo", other))
}

// drawClass draws the images of class number c. The seed is the class and the number of the image,
// so that each image is the same in every run.
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

// picture draws a shape of random color, place and size. Its ground is lighter or darker than the
// shape, with equal chances.
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

// write encodes an image as a PNG file in folder.
func write(folder *os.Root, name string, m image.Image) error {
	f, err := private.Create(folder, name, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, m), f.Close())
}
