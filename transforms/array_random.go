package transforms

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/tensor"
)

// ArrayRandom is an ArrayRemaker that draws random numbers from the stream of the record. Fields of
// one record must move alike, such as a field of temperatures and one of winds. So operations that
// move elements (flips, turns, crops) draw by their order among the moving operations of a
// pipeline, whatever other operations come between.
type ArrayRandom interface {
	ArrayRemaker

	// RemakeRandom is Remake with a random stream.
	RemakeRandom(dst, src []float64, in tensor.Spec, rnd Rand) error

	// Moves reports whether it moves elements, so that fields of a record share its stream.
	Moves() bool
}

var _, _, _, _ ArrayRandom = RandomFlip{}, RandomRot90{}, RandomSpatialCrop{}, RandomNoise{}

// errDraws is the error of an ArrayRandom that has no random stream, outside of a loader.
var errDraws = errors.New("it draws random numbers, which only a loader provides; use it in a loader")

// remaking is embedded in transforms that never work in place, and provides their Apply.
type remaking struct{}

// Apply is never called: the transform is an ArrayRemaker.
func (remaking) Apply(_ []float64, _ int, _ tensor.Spec) {}

// drawing is embedded in each ArrayRandom of this package. It provides the methods of a transform
// that keeps the number of elements.
type drawing struct{ remaking }

// Remade returns n: the number of elements stays the same.
func (drawing) Remade(n int, _ tensor.Spec) int { return n }

// Remake returns an error, because there is no random stream to draw from.
func (drawing) Remake(_, _ []float64, _ tensor.Spec) error { return errDraws }

// Moves returns true: the transform moves elements.
func (drawing) Moves() bool { return true }

// RandomFlip reverses each of its axes with probability P, independently.
type RandomFlip struct {
	drawing

	Axes []Axis   `json:"axes" is:"axes"`             // those that a field does not have by name are left out
	P    *float64 `json:"p" default:"0.5" in:"[0,1]"` // of each axis
}

// Output refuses axes that the field does not have.
func (t RandomFlip) Output(in tensor.Spec) (tensor.Spec, error) {
	_, err := axesIn(t.Axes, in)
	return in, err
}

// RemakeRandom flips. Each of Axes takes one number of the stream even if the field does not have
// the axis: fields of a record with different axes then draw the same numbers for the axes they
// share.
func (t RandomFlip) RemakeRandom(dst, src []float64, in tensor.Spec, rnd Rand) error {
	return remakeMoved(t, dst, src, in, &rnd)
}

func (t RandomFlip) move(p *placement, in tensor.Spec, rnd *Rand) error {
	axes, err := axesIn(t.Axes, in)
	if err != nil {
		return err
	}
	for _, axis := range axes {
		if u := rnd.Float64(); axis >= 0 && u < *t.P {
			p.offset += (p.shape[axis] - 1) * p.strides[axis]
			p.strides[axis] = -p.strides[axis]
		}
	}
	return nil
}

// RandomRot90 turns by 90 degrees, or a multiple, from the first of two axes towards the second, as numpy.rot90 does.
type RandomRot90 struct {
	drawing

	Axes []Axis   `json:"axes" is:"axes"` // two, of one length
	P    *float64 `json:"p" default:"0.5" in:"[0,1]"`
	MaxK int      `json:"max_k" default:"3" in:"[1,3]"` // turns are 1 to MaxK times 90 degrees
}

// Resolve checks that there are two axes.
func (t RandomRot90) Resolve() (ArrayTransform, error) {
	if len(t.Axes) != 2 {
		return t, fmt.Errorf("%d axes; a turn has two", len(t.Axes))
	}
	return t, nil
}

// Output refuses axes that do not exist or differ in length: a turn would then change the shape.
func (t RandomRot90) Output(in tensor.Spec) (tensor.Spec, error) {
	_, err := t.plane(in)
	return in, err
}

func (t RandomRot90) plane(in tensor.Spec) ([]int, error) {
	axes, err := axesIn(t.Axes, in)
	switch {
	case err != nil:
	case axes[0] < 0 || axes[1] < 0:
		err = fmt.Errorf("field %q does not have both axes %q; it has %q", in.Name, t.Axes, in.Dims)
	case in.Shape[axes[0]] != in.Shape[axes[1]]:
		err = fmt.Errorf("the axes %q of shape %v have two lengths, so that a turn would change the shape", t.Axes, in.Shape)
	}
	return axes, err
}

func (t RandomRot90) RemakeRandom(dst, src []float64, in tensor.Spec, rnd Rand) error {
	return remakeMoved(t, dst, src, in, &rnd)
}

func (t RandomRot90) move(p *placement, in tensor.Spec, rnd *Rand) error {
	axes, err := t.plane(in)
	if err != nil {
		return err
	}
	u, k := rnd.Float64(), 1+rnd.IntN(t.MaxK)
	if u >= *t.P {
		return nil
	}
	a, b := axes[0], axes[1]
	sa, sb, n := p.strides[a], p.strides[b], in.Shape[a]-1
	switch k { // element (i, j) of the result comes from the array's
	case 1: // (j, n-i)
		p.strides[a], p.strides[b], p.offset = -sb, sa, p.offset+n*sb
	case 2: // (n-i, n-j)
		p.strides[a], p.strides[b], p.offset = -sa, -sb, p.offset+n*(sa+sb)
	case 3: // (n-j, i)
		p.strides[a], p.strides[b], p.offset = sb, -sa, p.offset+n*sa
	}
	return nil
}

// spatialCrop holds the parameters that the crops share.
type spatialCrop struct {
	size []int
	axes []Axis
}

// checkCrop refuses sizes that are not positive, and a number of sizes other than the number of
// axes.
func checkCrop(size []int, axes []Axis) error {
	if len(size) == 0 || slices.Min(size) < 1 {
		return fmt.Errorf("size %v; must have one number or more, each positive", size)
	}
	if axes == nil {
		return nil
	}
	if len(axes) != len(size) {
		return fmt.Errorf("%d sizes for %d axes", len(size), len(axes))
	}
	return checkAxes(axes)
}

// lastAxes returns axes, or the last n axes if axes is nil.
func lastAxes(axes []Axis, n int) []Axis {
	if axes != nil {
		return axes
	}
	for k := range n {
		axes = append(axes, Axis(fmt.Sprint(k-n)))
	}
	return axes
}

// output returns the cropped field, with the numbers of the axes that are cropped.
func (c spatialCrop) output(in tensor.Spec) (tensor.Spec, []int, error) {
	axes, err := axesIn(c.axes, in)
	if err != nil {
		return in, nil, err
	}
	shape := slices.Clone(in.Shape)
	for i, axis := range axes {
		if axis < 0 {
			continue
		}
		if c.size[i] > shape[axis] {
			return in, nil, fmt.Errorf("a crop of %d of axis %s, which has %d elements in shape %v", c.size[i], c.axes[i],
				shape[axis], in.Shape)
		}
		shape[axis] = c.size[i]
	}
	in.Shape = shape
	return in, axes, nil
}

// move restricts the mapping to the part that begins at start(room) on each axis that has room for several starts.
func (c spatialCrop) move(p *placement, in tensor.Spec, start func(room int) int) error {
	_, axes, err := c.output(in)
	if err != nil {
		return err
	}
	for i, axis := range axes {
		if axis < 0 {
			start(0)
			continue
		}
		p.offset += start(in.Shape[axis]-c.size[i]) * p.strides[axis]
		p.shape[axis] = c.size[i]
	}
	return nil
}

// RandomSpatialCrop takes a part of a size at a random place.
type RandomSpatialCrop struct {
	drawing

	Size []int  `json:"size"`
	Axes []Axis `json:"axes"` // as many; nil means the last ones. Those that a field does not have by name are left out
}

// Resolve fills in Axes.
func (t RandomSpatialCrop) Resolve() (ArrayTransform, error) {
	err := checkCrop(t.Size, t.Axes)
	t.Axes = lastAxes(t.Axes, len(t.Size))
	return t, err
}

// Output returns the cropped shape, and refuses a crop that is larger than the field.
func (t RandomSpatialCrop) Output(in tensor.Spec) (tensor.Spec, error) {
	out, _, err := spatialCrop{t.Size, t.Axes}.output(in)
	return out, err
}

// Remade returns the number of elements in the crop.
func (t RandomSpatialCrop) Remade(n int, in tensor.Spec) int { return remade(t, n, in) }

// remade returns the number of elements that a transform makes from a record of n elements.
func remade(t ArrayTransform, n int, in tensor.Spec) int {
	if out, err := t.Output(in); err == nil {
		return out.Shape.Elems()
	}
	return n
}

// RemakeRandom crops. Each of Axes takes one number of the stream even if the field does not have
// the axis: fields of a record with different axes are then cropped alike.
func (t RandomSpatialCrop) RemakeRandom(dst, src []float64, in tensor.Spec, rnd Rand) error {
	return remakeMoved(t, dst, src, in, &rnd)
}

func (t RandomSpatialCrop) move(p *placement, in tensor.Spec, rnd *Rand) error {
	return spatialCrop{t.Size, t.Axes}.move(p, in, func(room int) int { return int(rnd.Float64() * float64(room+1)) })
}

// CenterSpatialCrop takes the middle part of a given size, which begins at (n - size) / 2, rounded
// down.
type CenterSpatialCrop struct {
	remaking

	Size []int  `json:"size"`
	Axes []Axis `json:"axes"` // as in RandomSpatialCrop
}

// Resolve fills in Axes.
func (t CenterSpatialCrop) Resolve() (ArrayTransform, error) {
	err := checkCrop(t.Size, t.Axes)
	t.Axes = lastAxes(t.Axes, len(t.Size))
	return t, err
}

// Output returns the cropped shape, and refuses a crop that is larger than the field.
func (t CenterSpatialCrop) Output(in tensor.Spec) (tensor.Spec, error) {
	out, _, err := spatialCrop{t.Size, t.Axes}.output(in)
	return out, err
}

// Remade returns the number of elements in the crop.
func (t CenterSpatialCrop) Remade(n int, in tensor.Spec) int { return remade(t, n, in) }

func (t CenterSpatialCrop) Remake(dst, src []float64, in tensor.Spec) error {
	return remakeMoved(t, dst, src, in, nil)
}

func (t CenterSpatialCrop) move(p *placement, in tensor.Spec, _ *Rand) error {
	return spatialCrop{t.Size, t.Axes}.move(p, in, func(room int) int { return room / 2 })
}

// RandomNoise adds a normally distributed number to each element. The numbers differ between
// elements, fields, records and epochs.
type RandomNoise struct {
	drawing

	Std  float64 `json:"std" in:"(0,inf)"`
	Mean float64 `json:"mean" in:"(-inf,inf)"`
}

// Output refuses integers, which cannot hold the noise.
func (RandomNoise) Output(in tensor.Spec) (tensor.Spec, error) { return needFloat(in) }

// Moves returns false: noise leaves elements in place, and must differ between the fields of a
// record.
func (RandomNoise) Moves() bool { return false }

func (t RandomNoise) RemakeRandom(dst, src []float64, _ tensor.Spec, rnd Rand) error {
	for i, x := range src {
		dst[i] = x + t.Mean + float64(t.Std*rnd.Normal())
	}
	return nil
}
