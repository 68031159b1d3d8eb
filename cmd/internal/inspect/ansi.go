package inspect

import (
	"fmt"
	"image"
	"strings"

	"golang.org/x/image/draw"
)

// ansi draws a picture, at most width characters wide, for a terminal of 24-bit colours: each
// character is two pixels, one above the other.
func ansi(picture image.Image, width, indent int) string {
	w, h := picture.Bounds().Dx(), picture.Bounds().Dy()
	if w > width {
		w, h = width, max(1, (h*width+w/2)/w)
	}
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(img, img.Rect, picture, picture.Bounds(), draw.Src, nil)
	var b strings.Builder
	for y := 0; y < h; y += 2 {
		b.WriteString(strings.Repeat(" ", indent))
		for x := range w {
			top := img.RGBAAt(x, y)
			fmt.Fprintf(&b, "\x1b[38;2;%d;%d;%dm", top.R, top.G, top.B)
			if y+1 < h {
				low := img.RGBAAt(x, y+1)
				fmt.Fprintf(&b, "\x1b[48;2;%d;%d;%dm", low.R, low.G, low.B)
			}
			b.WriteString("▀")
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String()
}
