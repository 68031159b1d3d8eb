package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// images is an open dataset of labeled images.
type images struct {
	*mmapds.Dataset
	image, label store.Field
	channels     int
	height       int
	width        int
	steps        [3]int // elements from one channel, row, pixel to the next
	classes      []string
}

// openImages opens a dataset, or a split of it, and makes sure that it has images and
// labels to train on.
func openImages(path, split string, c config) (*images, error) {
	ds, err := mmapds.Open(path, mmapds.WithSplit(split))
	if err != nil {
		return nil, err
	}
	d := &images{Dataset: ds}
	if err := d.describe(c.images, c.labels); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), ds.Close())
	}
	return d, nil
}

func (d *images) describe(image, label string) error {
	s := d.Schema()
	i, l := s.Index(image), s.Index(label)
	if i < 0 || l < 0 {
		return fmt.Errorf("needs the fields %q and %q; see -images and -labels", image, label)
	}
	d.image, d.label = s.Fields[i], s.Fields[l]
	if d.label.DType != tensor.Int64 || len(d.label.Shape) != 0 {
		return fmt.Errorf("field %q: labels must be int64 and one a record, not %v %v", label, d.label.DType, d.label.Shape)
	}
	if d.image.DType != tensor.Uint8 && d.image.DType != tensor.Float32 {
		return fmt.Errorf("field %q: images must be uint8 or float32, not %v", image, d.image.DType)
	}
	if err := d.measure(); err != nil {
		return err
	}
	return d.nameClasses()
}

// measure finds out which axis is which. If no layout is recorded, a first axis of up to 4 is taken
// for the channels.
func (d *images) measure() error {
	shape := d.image.Shape
	switch {
	case len(shape) == 2:
		shape = tensor.Shape{1, shape[0], shape[1]}
	case len(shape) != 3:
		return fmt.Errorf("field %q: shape %v is not that of images", d.image.Name, shape)
	}
	if d.image.Layout == tensor.HWC || d.image.Layout == "" && shape[0] > 4 {
		d.height, d.width, d.channels = shape[0], shape[1], shape[2]
		d.steps = [3]int{1, d.width * d.channels, d.channels}
		return nil
	}
	d.channels, d.height, d.width = shape[0], shape[1], shape[2]
	d.steps = [3]int{d.height * d.width, d.width, 1}
	return nil
}

// nameClasses takes the recorded names, or makes some from the labels.
func (d *images) nameClasses() error {
	d.classes = d.label.Classes
	labels, err := d.Slice(d.label.Name, 0, d.Len())
	if err != nil {
		return err
	}
	values := tensor.As[int64](labels)
	low, high := slices.Min(values), slices.Max(values)
	if len(d.classes) == 0 && high < 1<<16 {
		for i := range high + 1 {
			d.classes = append(d.classes, fmt.Sprint(i))
		}
	}
	if low < 0 || high >= int64(len(d.classes)) {
		return fmt.Errorf("field %q: labels go from %d to %d, for %d classes", d.label.Name, low, high, len(d.classes))
	}
	if len(d.classes) < 2 {
		return fmt.Errorf("field %q: there is one class only, so there is nothing to learn", d.label.Name)
	}
	return nil
}

// like returns why a network for d cannot be judged by other.
func (d *images) like(other *images) error {
	if d.channels != other.channels || d.height != other.height || d.width != other.width ||
		d.image.DType != other.image.DType {
		return fmt.Errorf("images are %v %v in one dataset and %v %v in the other",
			d.image.DType, d.image.Shape, other.image.DType, other.image.Shape)
	}
	if !slices.Equal(d.classes, other.classes) {
		return fmt.Errorf("the datasets have other classes: %q and %q", d.classes, other.classes)
	}
	return nil
}

// scaling returns the scale and bias that bring a stored value x of each channel to about
// mean 0 and standard deviation 1: x*scale + bias. It follows the manifest: the
// normalization that was asked for, or else the dataset's own statistics.
func (d *images) scaling() (scale, bias []float32) {
	n := d.image.Normalization
	if n == nil {
		n = d.ownNormalization()
	}
	for c := range d.channels {
		a, b := 1.0, 0.0
		if !n.Applied {
			a, b = 1/(n.Scale*n.Std[c]), -n.Mean[c]/n.Std[c]
		}
		scale, bias = append(scale, float32(a)), append(bias, float32(b))
	}
	return scale, bias
}

// ownNormalization normalizes by the statistics in the manifest. A file that another program
// wrote has no statistics; its values are taken to fill the range of their type, and floats
// the range of 0 to 1.
func (d *images) ownNormalization() *store.Normalization {
	n := &store.Normalization{Scale: 1}
	if d.image.DType == tensor.Uint8 {
		n.Scale = 255
	}
	var stats *store.Statistics
	if m := d.Manifest(); m != nil {
		stats = m.Statistics[d.image.Name]
	}
	for c := range d.channels {
		mean, std := 0.5, 0.25
		if stats != nil {
			v := stats.Moments
			if len(stats.Channels) == d.channels {
				v = stats.Channels[c]
			}
			mean, std = v.Mean/n.Scale, max(v.Std/n.Scale, 1e-6)
		}
		n.Mean, n.Std = append(n.Mean, mean), append(n.Std, std)
	}
	return n
}
