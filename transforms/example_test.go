package transforms_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// The evaluation pipeline of most ImageNet models, as float32.
func Example() {
	p, err := transforms.Compose(
		transforms.Resize{Size: []int{256}},
		transforms.CenterCrop{Size: []int{224}},
		transforms.ToLayout{Layout: transforms.CHW},
		transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}},
	)
	if err != nil {
		log.Fatal(err)
	}
	src := transforms.NewImage(500, 375, 3) // a decoder makes these
	out, err := p.Output(transforms.InfoOf(src))
	if err != nil {
		log.Fatal(err)
	}
	record := make([]byte, out.Bytes())
	if err := p.Runner().Do(record, src); err != nil {
		log.Fatal(err)
	}
	x := tensor.As[float32](tensor.Of(tensor.Spec{DType: out.DType, Shape: out.Shape()}, 1, record))
	fmt.Println(out, x[0])
	// Output: float32 (3, 224, 224) -2.117904
}

// A pipeline is written with a dataset and read back later.
func ExampleParse() {
	p, err := transforms.Parse([]byte(`[{"op":"Resize","size":[64,48],"interpolation":"lanczos"},{"op":"Grayscale"}]`))
	if err != nil {
		log.Fatal(err)
	}
	recipe, err := json.Marshal(p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(recipe))
	// Output: [{"op":"Resize","size":[64,48],"fit":"exact","max_size":0,"interpolation":"lanczos","pass_order":"auto","fill":[0],"antialias":true},{"op":"Grayscale","num_output_channels":1}]
}

// A mistake is found before any image is read.
func ExamplePipeline_Output() {
	p, err := transforms.Compose(transforms.Crop{Height: 300, Width: 300})
	if err != nil {
		log.Fatal(err)
	}
	_, err = p.Output(transforms.Info{W: 500, H: 256, C: 3})
	fmt.Println(err)
	// Output: transform Crop: rectangle (0,0)-(300,300) leaves the input of 500x256 pixels
}

// The same record of the same epoch is augmented in the same way by any worker.
func ExampleRunner_DoRand() {
	p, err := transforms.Compose(transforms.RandomHorizontalFlip{})
	if err != nil {
		log.Fatal(err)
	}
	src := transforms.NewImage(2, 1, 1)
	src.Pix[1] = 255
	r, record := p.Runner(), make([]byte, 2)
	for i := range uint64(4) {
		if err := r.DoRand(record, src, transforms.NewRand(42, 0, i)); err != nil {
			log.Fatal(err)
		}
		fmt.Println(record)
	}
	// Output:
	// [0 255]
	// [255 0]
	// [255 0]
	// [255 0]
}

// Stored records are augmented by what trains from them.
func ExampleSourceOf() {
	record := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12} // as a dataset has it
	src, err := transforms.SourceOf(transforms.Info{W: 2, H: 2, C: 3, Layout: transforms.CHW}, record)
	if err != nil {
		log.Fatal(err)
	}
	p, err := transforms.Compose(transforms.RandomHorizontalFlip{P: new(1.0)}, transforms.ToLayout{Layout: transforms.CHW})
	if err != nil {
		log.Fatal(err)
	}
	out := make([]byte, len(record))
	if err := p.Runner().DoRand(out, src, transforms.NewRand(0, 0, 0)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)
	// Output: [2 1 4 3 6 5 8 7 10 9 12 11]
}

// Fields that are not images have a pipeline of their own.
func ExampleComposeArray() {
	p, err := transforms.ComposeArray(
		transforms.Cast{DType: tensor.Float32},
		transforms.Standardize{Mean: []float64{2, 20}, Std: []float64{1, 10}, Axis: -1},
	)
	if err != nil {
		log.Fatal(err)
	}
	in := tensor.Spec{Name: "features", DType: tensor.Uint8, Shape: tensor.Shape{2}}
	r, err := p.Runner(in)
	if err != nil {
		log.Fatal(err)
	}
	out := make([]byte, 8)
	if err := r.Do(out, []byte{3, 50}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(tensor.As[float32](tensor.Of(tensor.Spec{DType: tensor.Float32}, 2, out)))
	// Output: [1 3]
}
