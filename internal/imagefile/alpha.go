package imagefile

// Alpha says how transparency is handled.
type Alpha uint8

// The values of Alpha.
const (
	DropAlpha Alpha = iota // colors as the file has them, however transparent their pixels are
	OnWhite                // colors blended with a white background
	OnBlack                // colors blended with a black background
)

// background returns the value of all channels of the background.
func (a Alpha) background() int {
	if a == OnWhite {
		return 255
	}
	return 0
}
