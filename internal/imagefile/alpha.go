package imagefile

// Alpha says what becomes of transparency.
type Alpha uint8

// The values of Alpha.
const (
	DropAlpha Alpha = iota // colours as the file has them, however transparent
	OnWhite                // as they look on white
	OnBlack                // as they look on black
)

// background returns the value of all channels behind the image.
func (a Alpha) background() int {
	if a == OnWhite {
		return 255
	}
	return 0
}

// over puts pixels of four bytes, the last of which is alpha, on a background: what
// img2dataset has for white, alpha/255*colour + background*(1-alpha/255), to the nearest.
// No sum lies halfway between two integers, as 255 is odd.
func over(pix []byte, background int) {
	for i := 0; i+4 <= len(pix); i += 4 {
		p := pix[i : i+4 : i+4]
		a := int(p[3])
		if a == 255 {
			continue
		}
		behind := (255-a)*background + 127
		p[0] = byte((int(p[0])*a + behind) / 255)
		p[1] = byte((int(p[1])*a + behind) / 255)
		p[2] = byte((int(p[2])*a + behind) / 255)
		p[3] = 255
	}
}
