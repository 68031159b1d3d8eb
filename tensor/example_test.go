package tensor_test

import (
	"fmt"

	"github.com/penstock/penstock/tensor"
)

func Example() {
	spec := tensor.Spec{Name: "points", DType: tensor.Float32, Shape: tensor.Shape{2}}
	data := make([]byte, 3*spec.RecordBytes())
	v := tensor.Of(spec, 3, data) // three points, over bytes that stay where they are
	x := tensor.As[float32](v)
	x[0], x[1] = 1.5, -2
	fmt.Println(v.Shape(), v.DType(), tensor.As[float32](v.Slice(0, 1)))
	// Output: (3, 2) float32 [1.5 -2]
}
