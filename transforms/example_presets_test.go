package transforms_test

import (
	"fmt"

	"github.com/penstock/penstock/transforms"
)

// An evaluation with timm's default crop.
func ExampleTimmEval() {
	ts, err := transforms.TimmEval(224, 0.875, "center", "bicubic")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := transforms.Compose(ts...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Output(transforms.Info{W: 500, H: 375, C: 3}))
	// Output: uint8 (224, 224, 3) <nil>
}

// Ten records of each image, as torchvision's TenCrop.
func ExampleTenCrop() {
	resize := []transforms.Transform{transforms.Resize{Size: []int{256}}}
	ps, err := transforms.TenCrop(resize, []int{224}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := ps[9].Output(transforms.Info{W: 500, H: 375, C: 3})
	fmt.Println(len(ps), out, err)
	// Output: 10 uint8 (224, 224, 3) <nil>
}
