// Package field makes the fields of a dataset from the fields of a source: each field by a [Job], which has a
// [Worker] for each goroutine. It implements the flags of preprocess about values: sizes, transforms, dtypes,
// normalization, masks, classes.
//
// [Options] holds these flags. [Options.Jobs] chooses the Job of each field: an image is decoded and transformed
// (imageField), stored with its encoded bytes (encodedField, shrinkField) or as class numbers (maskField); an array
// goes through transforms (arrayField); anything else is copied (copyField), or renumbered if a dataset that is
// appended to has its classes in another order (relabel). A flag that no field uses is an error, because a flag
// without an effect is a mistake.
//
// A [Worker] has two calls:
//
//	Probe  the first usable sample decides dtype and shape of the field; all others must fit
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
//   - The pixels that are decoded at one time are limited ([LimitDecoding]), whatever sizes the headers of images
//     claim.
//   - A value is exact or refused: numbers that a dtype does not hold are a SampleError, never another number.
package field
