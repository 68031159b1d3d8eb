// Package transforms turns decoded images into records: a pipeline of operations with
// torchvision's names, defaults and geometry, Pillow's pixels, and an output whose shape and
// type are known before the first image is read.
//
//	p, err := transforms.Compose(
//		transforms.Resize{Size: []int{256}},
//		transforms.CenterCrop{Size: []int{224}},
//		transforms.ToLayout{Layout: transforms.CHW},
//		transforms.ConvertDType{DType: tensor.Float32},
//		transforms.Normalize{Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}},
//	)
//	r := p.Runner()                // one for each worker
//	err = r.Do(record, source)     // decodes, resizes and stores in one pass, allocating nothing
//
// Operations do not run one after the other. They give a Plan what they need, and the Plan
// fuses it: only the rows and columns that a crop leaves are decoded and resized, and the
// last pass writes the record in its final layout and type.
//
// Random operations draw from a stream that is a function of seed, epoch and record, so that
// a record is augmented in the same way wherever and whenever that happens. Fields that are
// no images have an ArrayPipeline.
//
// A Pipeline is JSON, with every parameter spelled out, and Parse reads it back.
package transforms
