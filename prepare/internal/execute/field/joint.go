package field

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
	"github.com/penstock/penstock/transforms/geometry"
)

// Joint is a field of images, and the fields that move with its pixels.
type Joint struct {
	Image   int
	Follows []int // positions of these fields, ascending
	job     Job   // of the image
	fields  []source.Field
	keeps   bool           // image files stay files, see shrinkField
	dtypes  []tensor.DType // by follower: type of the numbers in mask files, from the first sample
}

// joints returns a Joint for each group of package geometry.
func joints(groups []geometry.Group, jobs []Job, fields []source.Field) (list []*Joint) {
	for _, g := range groups {
		j := &Joint{Image: g.Image, Follows: g.Follows, job: jobs[g.Image], dtypes: make([]tensor.DType, len(g.Follows))}
		_, j.keeps = j.job.(*shrinkField)
		for _, k := range g.Follows {
			j.fields = append(j.fields, fields[k])
		}
		list = append(list, j)
	}
	return list
}

// JointWorker moves the fields of a Joint, for one goroutine.
type JointWorker struct {
	joint     *Joint
	files     opener // parses the image; nil if the image is pixels
	info      transforms.Info
	run       *transforms.Runner
	mover     *geometry.Mover
	ins, outs [][]byte
}

// NewWorker returns a worker for one goroutine.
func (j *Joint) NewWorker() *JointWorker {
	w := &JointWorker{joint: j, ins: make([][]byte, len(j.Follows)), outs: make([][]byte, len(j.Follows))}
	w.run = j.pipeline().Runner()
	switch job := j.job.(type) {
	case *imageField:
		w.files = job.opener()
	case *shrinkField:
		w.files = job.opener()
	}
	if p, ok := w.files.(pixelOpener); ok {
		w.files, w.info = nil, transforms.Info{W: p.info.W, H: p.info.H, C: p.info.C}
	}
	return w
}

// pipeline returns the transforms of the image.
func (j *Joint) pipeline() *transforms.Pipeline {
	if s, ok := j.job.(*shrinkField); ok {
		return s.pipeline
	}
	return j.job.(*imageField).pipeline
}

// follower says how field k of Follows moves.
func (j *Joint) follower(k int) geometry.Follower {
	return geometry.Follower{In: j.fields[k].Spec, DType: j.dtypes[k], Kept: j.keeps}
}

// Probe returns the fields of the dataset for Follows, given the field that the image's Probe has returned. For
// mask files, the first sample decides the type.
func (w *JointWorker) Probe(image store.Field, get func(field int) []byte) (list []store.Field, err error) {
	j := w.joint
	out := pixels(image)
	for k, at := range j.Follows {
		f := j.fields[k]
		if f.Content == tensor.Mask && f.IsBytes() && f.Instances == "" {
			m, err := imagefile.New(imagefile.Options{}).Numbers(get(at))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			j.dtypes[k] = m.DType
		}
		spec := j.follower(k).Output(out)
		field := f.Field
		field.Spec, field.Storage = spec, spec.DType.Descr()
		list = append(list, field)
	}
	// Probe has changed dtypes, by which the mover was made.
	w.mover = nil
	_, err = w.move(get, func(k int) []byte {
		if f := list[k]; !f.Ragged {
			return make([]byte, f.RecordBytes())
		}
		return nil
	})
	return list, err
}

// Do sets the values of Follows in a record, in the memory of records if they fit.
func (w *JointWorker) Do(get func(field int) []byte, records [][]byte) error {
	outs, err := w.move(get, func(k int) []byte { return records[w.joint.Follows[k]] })
	if err != nil {
		return ofSample(err)
	}
	for k, at := range w.joint.Follows {
		records[at] = outs[k]
	}
	return nil
}

// move moves boxes, masks and points by the same plan as the pixels of the image. The mover and its memory are kept
// from record to record.
func (w *JointWorker) move(get func(field int) []byte, memory func(k int) []byte) ([][]byte, error) {
	j := w.joint
	if w.mover == nil {
		var follows []geometry.Follower
		for k := range j.Follows {
			follows = append(follows, j.follower(k))
		}
		w.mover = geometry.NewMover(j.pipeline(), follows, 0)
	}
	for k, at := range j.Follows {
		w.ins[k], w.outs[k] = get(at), memory(k)
	}
	boxes, err := w.mover.Begin(w.ins)
	if err != nil {
		return nil, source.ValueError("%w", err)
	}
	moves, err := w.moves(get(j.Image), boxes)
	if err != nil {
		return nil, err
	}
	_, err = w.mover.Finish(moves, w.outs, w.ins)
	return w.outs, err
}

// moves returns where the pixels of an image go. It reads only the header of the file: the plan depends on sizes
// alone.
func (w *JointWorker) moves(image []byte, boxes []float32) (*transforms.Moves, error) {
	info := w.info
	if w.files != nil {
		v := w.files.parse(image)
		if v.err != nil {
			return nil, v.err
		}
		width, height := v.file.Config.Opened(w.files.(*fileOpener).rules.Orient)
		info = transforms.Info{W: width, H: height, C: 3}
		// The image file stays as it is, and so do all fields that lie on the image.
		if s, ok := w.joint.job.(*shrinkField); ok && !s.isLarge(v.file.Config) {
			return transforms.Still(width, height), nil
		}
	}
	return w.run.Moves(info, transforms.Rand{}, boxes)
}

// Read returns the fields as jobs see them, after Places.Convert: boxes and keypoints are float32.
func Read(fields []source.Field) []source.Field {
	fields = slices.Clone(fields)
	for i, f := range fields {
		if f.Content == tensor.Boxes || f.Content == tensor.Keypoints {
			fields[i].DType, fields[i].Storage = tensor.Float32, tensor.Float32.Descr()
		}
	}
	return fields
}
