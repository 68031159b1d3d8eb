package imagefile_test

import (
	"fmt"
	"image"
	"os"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/pixel"
)

// The mean of an image's green channel, from its upper half alone.
func Example() {
	data, err := os.ReadFile("testdata/kinds/420.jpg")
	if err != nil {
		fmt.Println(err)
		return
	}
	d := imagefile.New(imagefile.Options{})
	src, err := d.Open(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	w, h, _ := src.Size()
	sum, upper := 0, image.Rect(0, 0, w, h/2)
	err = src.Scan(upper, func(_ int, strip pixel.Image) error {
		for y := range strip.H {
			for x := range strip.W {
				sum += int(strip.Pix[y*strip.Stride+x*strip.Step+1])
			}
		}
		return nil
	})
	fmt.Printf("%dx%d, mean green %d, %v\n", w, h, sum/(upper.Dx()*upper.Dy()), err)
	// Output: 45x37, mean green 138, <nil>
}
