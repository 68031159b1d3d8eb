// Package field makes the fields of a dataset from the fields of a source: each field by a [Job], in a worker of
// its own for each goroutine. It is what the flags of preprocess about values (sizes, transforms, dtypes,
// normalisation, masks, classes) come down to.
//
// [Options] holds these flags. [Options.Jobs] chooses the Job of each field: an image is decoded and transformed
// (imageField), stored with its encoded bytes (encodedField) or as class numbers (maskField); an array goes through
// transforms (arrayField); anything else is copied (copyField), renumbered where a dataset that is appended to has
// its classes in another order. It refuses a flag that no field uses, because a flag without an effect is a
// mistake.
//
// A [Worker] has two calls:
//
//	Probe  the first usable sample says dtype and shape of the field; all others must fit
//	Do     makes the value of a record from the value of a sample
//	-      a [SampleError] concerns one sample, which --on-error may leave out; any other error ends the run
//
// A [Joint] is a group of fields on one image that geometry moves together: the boxes, points and masks of an image
// go where its pixels go. The Job of such a field exists and is never called; the Joint calls the transforms
// instead.
//
// # Invariants
//
//   - The recipe ([Recipe]) has all that decides a value, so that equal recipes over equal sources give equal
//     bytes. What only decides the speed, such as limits of memory, is not in it.
//   - What is decoded at one time is bounded ([LimitDecoding]), whatever sizes the headers of images claim.
//   - A value is exact or refused: numbers that a dtype does not hold are a SampleError, never another number.
package field
