package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// batchTransform is an operation on the images and labels of a whole batch. Its names are
// torchvision's, if torchvision has the operation. Op decides which of the other members may be
// set.
type batchTransform struct {
	Op         string           `json:"op"`
	Alpha      *float64         `json:"alpha,omitempty"`       // MixUp, CutMix; nil means 1
	Smoothing  float64          `json:"smoothing,omitempty"`   // LabelSmoothing: from 0 to 1
	NumClasses *int             `json:"num_classes,omitempty"` // nil means as many as the labels have names
	Field      string           `json:"field,omitempty"`       // of images; "" means the only one
	Labels     string           `json:"labels,omitempty"`      // "" means the only field of single integers
	Transforms []batchTransform `json:"transforms,omitempty"`  // RandomChoice
	P          []float64        `json:"p,omitempty"`           // RandomChoice: weights, in proportion
	MultipleOf int              `json:"multiple_of,omitempty"` // PadToLargest: height and width are multiples of this; 0 means 1
	Fill       float64          `json:"fill,omitempty"`        // PadToLargest, of images
	MaskFill   *int             `json:"mask_fill,omitempty"`   // PadToLargest; nil means 255
}

// alpha returns Alpha, whose default is torchvision's.
func (t batchTransform) alpha() float64 {
	if t.Alpha == nil {
		return 1
	}
	return *t.Alpha
}

// mixing is the batch transforms of a session, with the fields they work on. images and labels are
// indexes of fields; images is -1 if only labels change.
type mixing struct {
	images, labels int // places among the fields; images is -1 if none are mixed
	info           transforms.Info
	classes        int
	choices        []batchTransform // one of these mixes each batch; empty if labels are only smoothed
	p              []float64
	smoothing      float64
	result         string // the field of the loader's batches with the shares of classes
}

// mixesImages reports whether a batch transform needs the images, as floats, in feed.
func (o *Options) mixesImages() bool {
	return slices.ContainsFunc(o.BatchTransforms, func(t batchTransform) bool { return t.Op != "LabelSmoothing" })
}

// mixing resolves the batch transforms against the fields; nil if there is no batch
// transform besides PadToLargest, which works on single fields.
func (o *Options) mixing(fields []made) (*mixing, error) {
	if err := o.checkPadding(fields); err != nil {
		return nil, err
	}
	pads := func(t batchTransform) bool { return t.Op == padToLargest }
	mixes := slices.DeleteFunc(slices.Clone(o.BatchTransforms), pads)
	if len(mixes) == 0 {
		return nil, nil
	}
	m := &mixing{images: -1, labels: -1}
	for _, t := range mixes {
		if err := m.add(t, fields); err != nil {
			return nil, fmt.Errorf("batch_transforms: %s: %w", t.Op, err)
		}
	}
	if m.classes == 0 {
		m.classes = len(fields[m.labels].field.Classes)
	}
	if m.classes < 2 {
		return nil, fmt.Errorf("batch_transforms: num_classes is %d, and the field %q names no classes; give num_classes",
			m.classes, fields[m.labels].field.Name)
	}
	if m.images >= 0 && m.info.DType != tensor.Float32 {
		return nil, fmt.Errorf("batch_transforms: the field %q is %v; images are mixed as float32: end their transforms "+
			"with ToTensor, or ToDtype and Normalize", fields[m.images].field.Name, m.info)
	}
	if m.images >= 0 && o.OnError == "blank" {
		return nil, errors.New("batch_transforms: MixUp and CutMix mix each record with the one before it, and on_error " +
			`"blank" has zeros of class 0 for a record that cannot be read; take on_error "backfill"`)
	}
	m.result = fields[m.labels].field.Name + "_shares"
	return m, nil
}

// add adds a batch transform. Smoothing twice keeps the product of the kept parts.
func (m *mixing) add(t batchTransform, fields []made) error {
	if t.Op == "RandomChoice" {
		if len(t.P) != len(t.Transforms) || len(t.P) == 0 {
			return fmt.Errorf("%d probabilities of %d transforms", len(t.P), len(t.Transforms))
		}
		if sum := sumOf(t.P); !(slices.Min(t.P) >= 0 && sum > 0 && sum < 1e300) {
			return fmt.Errorf("probabilities %v; they must not be negative, and not all 0", t.P)
		}
		return m.choose(t.Transforms, t.P, fields)
	}
	if t.Op == "LabelSmoothing" {
		if !(t.Smoothing >= 0 && t.Smoothing <= 1) {
			return fmt.Errorf("smoothing is %v; it must be from 0 to 1", t.Smoothing)
		}
		m.smoothing = 1 - (1-m.smoothing)*(1-t.Smoothing)
		return m.resolve(t, fields)
	}
	return m.choose([]batchTransform{t}, []float64{1}, fields)
}

// choose lets a random transform of ts, chosen with the weights p, mix each batch.
func (m *mixing) choose(ts []batchTransform, p []float64, fields []made) error {
	if m.choices != nil {
		return errors.New("batches are mixed once; take one of MixUp and CutMix, or RandomChoice of both")
	}
	for _, t := range ts {
		if t.Op != "MixUp" && t.Op != "CutMix" {
			return fmt.Errorf("%q does not mix batches; MixUp and CutMix do", t.Op)
		}
		if a := t.alpha(); !(a > 0) || math.IsInf(a, 0) {
			return fmt.Errorf("alpha is %v; it must be positive: to mix nothing, leave %s out", a, t.Op)
		}
		if err := errors.Join(m.resolve(t, fields), m.resolveImages(t, fields)); err != nil {
			return err
		}
	}
	m.choices, m.p = ts, p
	return nil
}

// resolve finds the field of labels and the number of classes, which all batch transforms must
// share.
func (m *mixing) resolve(t batchTransform, fields []made) error {
	at, err := pick(t.Labels, fields, "labels", func(f made) bool {
		return len(f.field.Shape) == 0 && !f.field.Ragged && !f.field.DType.IsFloat() && f.field.DType != tensor.Bool
	})
	if err != nil {
		return err
	}
	classes := m.classes
	if t.NumClasses != nil {
		if classes = *t.NumClasses; classes < 2 {
			return fmt.Errorf("num_classes is %d; it must be 2 or more", classes)
		}
	}
	if m.labels >= 0 && m.labels != at || m.classes != 0 && classes != m.classes {
		return errors.New("all batch transforms work on the same labels, of as many classes")
	}
	m.labels, m.classes = at, classes
	return nil
}

// resolveImages finds the field of images.
func (m *mixing) resolveImages(t batchTransform, fields []made) error {
	at, err := pick(t.Field, fields, "field", func(f made) bool { return f.image.C > 0 })
	if err != nil {
		return err
	}
	if m.images >= 0 && m.images != at {
		return errors.New("all choices work on the same images")
	}
	m.images, m.info = at, fields[at].image
	return nil
}

// pick returns the field called name or, if name is "", the only field that suits. what names the
// option in errors.
func pick(name string, fields []made, what string, suits func(made) bool) (int, error) {
	var names []string
	found := -1
	for i, f := range fields {
		if (name == "" || name == f.field.Name) && suits(f) {
			found = i
			names = append(names, f.field.Name)
		}
	}
	switch {
	case len(names) == 1:
		return found, nil
	case name != "":
		return 0, fmt.Errorf("%s is %q, which is not a field that it can work on", what, name)
	}
	return 0, fmt.Errorf("%d fields could be meant (%v); give %s", len(names), names, what)
}

// sumOf returns the sum of p.
func sumOf(p []float64) (sum float64) {
	for _, x := range p {
		sum += x
	}
	return sum
}

// collate returns the loader's Collate that mixes batches. Labels become a new field of float32
// shares, one per class, because a mixed image belongs to two classes.
func (m *mixing) collate(fields []made) loader.Collate {
	c := loader.Collate{
		Adds:   []tensor.Spec{{Name: m.result, DType: tensor.Float32, Shape: tensor.Shape{m.classes}}},
		Worker: func(int) (loader.CollateFunc, error) { return m.worker(fields), nil },
		ID:     m.id(fields),
	}
	if m.images >= 0 {
		c.Edits = []string{fields[m.images].field.Name}
	}
	return c
}

// id identifies everything on which the result depends, so that a State of other batch transforms
// is refused.
func (m *mixing) id(fields []made) string {
	choices, err := json.Marshal(m.choices)
	if err != nil { // they were read from JSON
		panic("feed: batch transforms that are not JSON: " + err.Error())
	}
	images := ""
	if m.images >= 0 {
		images = fields[m.images].field.Name
	}
	return fmt.Sprintf("%s %v %v %d %q %q", choices, m.p, m.smoothing, m.classes, images, fields[m.labels].field.Name)
}

// worker returns the function of one of the loader's goroutines, with buffers of its own. All
// random choices come from the batch's Rand, so they do not depend on the goroutine.
func (m *mixing) worker(fields []made) loader.CollateFunc {
	var mixers []func(*transforms.Batch, *transforms.Rand) error
	for _, t := range m.choices {
		if t.Op == "MixUp" {
			mixers = append(mixers, (&transforms.MixUp{Alpha: t.alpha(), Classes: m.classes}).Apply)
		} else {
			mixers = append(mixers, (&transforms.CutMix{Alpha: t.alpha(), Classes: m.classes}).Apply)
		}
	}
	var labels []int64
	return func(d *loader.MutableBatch) error {
		v := d.Field(fields[m.labels].field.Name)
		dtype, values := v.DType(), v.Bytes()
		labels = labels[:0]
		for i := range d.Len() {
			l, ok := dtype.Read(values[i*dtype.Size():]).Int64()
			if !ok || l < 0 || l >= int64(m.classes) {
				return fmt.Errorf("record %d has the label %s, and there are %d classes", d.Indices()[i],
					dtype.Text(values[i*dtype.Size():]), m.classes)
			}
			labels = append(labels, l)
		}
		b := transforms.Batch{Info: m.info, Labels: labels, Y: tensor.As[float32](d.Field(m.result))}
		rnd := d.Rand()
		if len(mixers) == 0 {
			clear(b.Y)
			for i, l := range labels {
				b.Y[i*m.classes+int(l)] = 1
			}
		} else {
			b.X = tensor.As[float32](d.Field(fields[m.images].field.Name))
			if err := mixers[m.draw(&rnd)](&b, &rnd); err != nil {
				return err
			}
		}
		m.smooth(b.Y)
		return nil
	}
}

// draw chooses one of the choices.
func (m *mixing) draw(rnd *transforms.Rand) int {
	if len(m.p) == 1 {
		return 0
	}
	at := rnd.Float64() * sumOf(m.p)
	for i, p := range m.p {
		if at < p {
			return i
		}
		at -= p
	}
	return len(m.p) - 1
}

// smooth spreads the part `smoothing` of each record's shares evenly over all classes. The explicit
// conversion keeps the compiler from fusing multiplication and addition, which would round
// differently on other CPUs.
func (m *mixing) smooth(y []float32) {
	if m.smoothing == 0 {
		return
	}
	keep, rest := float32(1-m.smoothing), float32(m.smoothing/float64(m.classes))
	for i := range y {
		y[i] = float32(y[i]*keep) + rest
	}
}

// labelField returns the field of labels as the client sees it: shares under the old name.
func (m *mixing) labelField(f store.Field) store.Field {
	return store.NewField(f.Name, tensor.Float32, m.classes)
}
