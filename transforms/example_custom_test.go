package transforms_test

import (
	"fmt"
	"log"

	"github.com/penstock/penstock/transforms"
)

// Threshold makes pixels black or white: a transform of one's own.
type Threshold struct {
	Level int `json:"level" in:"[1,255]"`
}

func init() { transforms.Register[Threshold]() }

func (t Threshold) Build(p *transforms.Plan) error {
	in := p.Info()
	return p.Apply(threshold, in.W, in.H, float64(t.Level))
}

func threshold(m, _ *transforms.Image, args transforms.OpArgs) {
	for i, v := range m.Pix {
		m.Pix[i] = 0
		if float64(v) >= args[0] {
			m.Pix[i] = 255
		}
	}
}

// A program adds its own transforms, to recipes too.
func ExampleRegister() {
	p, err := transforms.Parse([]byte(`[{"op":"Threshold","level":100},{"op":"HorizontalFlip"}]`))
	if err != nil {
		log.Fatal(err)
	}
	src := transforms.NewImage(4, 1, 1)
	copy(src.Pix, []byte{10, 99, 100, 200})
	record := make([]byte, 4)
	if err := p.Runner().Do(record, src); err != nil {
		log.Fatal(err)
	}
	fmt.Println(record)
	// Output: [255 255 0 0]
}
