package render

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Reader reads the marks of one field of images: boxes, keypoints, masks, and the labels of their
// instances. A field of kind mask has a class per pixel, and a field of kind masks one mask per
// instance. Reader also collects the classes it has seen, for a legend. It serves one goroutine.
type Reader struct {
	boxes, labels, points, mask, masks *store.Field // nil if there is none
	decoder                            *imagefile.Decoder
	seen                               map[string]int // the color number of each class that was seen, by its name
}

// Marks are the marks on one image of W by H pixels. perPoint is how many numbers a keypoint has.
type Marks struct {
	W, H     int
	objects  []object
	perPoint int
	classes  []pixel // of each pixel of the image; nil without a mask of classes
}

// object is an instance on the image.
type object struct {
	box    []float32 // left, top, right, bottom in pixels; nil if there is none
	name   string    // of the class; "" without a label
	color  int
	points []float32 // perPoint numbers for each keypoint
	mask   []byte    // not 0 for the pixels of the instance; nil if there is none
}

// pixel is the color of a pixel in a mask of classes: 1 more than its number in palette; 0 is no
// color.
type pixel uint8

// ignored is the number of pixels that belong to no class and that training leaves out: 255 in
// PASCAL VOC, Cityscapes and others.
const ignored = 255

// NewReader returns a Reader of the fields that lie on the images of a field, or nil if no field
// does. Of several fields of a kind, the first is read. Labels are a ragged field of integers whose
// rows belong to the same instances as the boxes, masks or keypoints; a field with class names is
// preferred.
func NewReader(fields []store.Field, imageField string) *Reader {
	r := &Reader{decoder: imagefile.New(imagefile.Options{}), seen: make(map[string]int)}
	first := func(to **store.Field, f *store.Field) {
		if *to == nil {
			*to = f
		}
	}
	for i := range fields {
		f := &fields[i]
		if !f.OnImage() || f.Image != "" && f.Image != imageField {
			continue
		}
		switch {
		case f.Content == tensor.Boxes:
			first(&r.boxes, f)
		case f.Content == tensor.Keypoints:
			first(&r.points, f)
		case f.Instances != "" || f.Ragged && !f.IsBytes():
			first(&r.masks, f)
		default:
			first(&r.mask, f)
		}
	}
	if r.boxes == nil && r.points == nil && r.mask == nil && r.masks == nil {
		return nil
	}
	for _, on := range []*store.Field{r.boxes, r.masks, r.points} {
		for i := range fields {
			f := &fields[i]
			if on != nil && on.Instances != "" && f.Instances == on.Instances && f.Ragged && len(f.Shape) == 0 &&
				!f.DType.IsFloat() && !f.IsBytes() &&
				(r.labels == nil || r.labels.Classes == nil && f.Classes != nil) {
				r.labels = f
			}
		}
	}
	return r
}

// Fields returns the names of the fields that Read asks for.
func (r *Reader) Fields() (list []string) {
	for _, f := range []*store.Field{r.boxes, r.labels, r.points, r.mask, r.masks} {
		if f != nil {
			list = append(list, f.Name)
		}
	}
	return list
}

// Record returns the value of a field in the current record, and its type.
type Record func(field string) (tensor.Spec, []byte, error)

// Read returns the marks on the current record, whose image has w by h pixels.
func (r *Reader) Read(get Record, w, h int) (*Marks, error) {
	m := &Marks{W: w, H: h}
	labels, err := r.numbers(get, r.labels)
	if err != nil {
		return nil, err
	}
	if err := r.readBoxes(m, get); err != nil {
		return nil, err
	}
	if err := r.readPoints(m, get); err != nil {
		return nil, err
	}
	if err := r.readMasks(m, get); err != nil {
		return nil, err
	}
	for i := range m.objects {
		o := &m.objects[i]
		if o.color = i; i < len(labels) {
			o.name = r.className(labels[i])
			o.color = r.colorOf(o.name, int(labels[i]))
		}
	}
	return m, r.readMask(m, get)
}

// at returns object i, and adds objects up to it if there are fewer: boxes, keypoints and masks of
// one instance have the same number.
func (m *Marks) at(i int) *object {
	for len(m.objects) <= i {
		m.objects = append(m.objects, object{})
	}
	return &m.objects[i]
}

// readBoxes reads boxes of 4 numbers.
func (r *Reader) readBoxes(m *Marks, get Record) error {
	boxes, err := floats(get, r.boxes)
	for i := 0; 4*i+4 <= len(boxes); i++ {
		m.at(i).box = boxes[4*i : 4*i+4]
	}
	return err
}

// readPoints reads the keypoints of all instances. The last axis of the field is the numbers of a
// keypoint, the axis before it the keypoints of an instance.
func (r *Reader) readPoints(m *Marks, get Record) error {
	points, err := floats(get, r.points)
	if r.points == nil || err != nil {
		return err
	}
	s := r.points.Shape
	m.perPoint = s[len(s)-1]
	n := m.perPoint
	if len(s) > 1 {
		n *= s[len(s)-2]
	}
	for i := 0; n*i+n <= len(points); i++ {
		m.at(i).points = points[n*i : n*i+n]
	}
	return nil
}

// readMasks reads one mask per instance. Of wider elements, the lowest byte decides.
func (r *Reader) readMasks(m *Marks, get Record) error {
	if r.masks == nil {
		return nil
	}
	spec, b, err := get(r.masks.Name)
	if err != nil || len(b) == 0 {
		return err
	}
	pixels := b
	if spec.IsBytes() {
		numbers, err := r.decoder.Numbers(b)
		if err != nil {
			return err
		}
		spec.DType, pixels = numbers.DType, numbers.Pix
	}
	size := spec.DType.Size()
	row := m.W * m.H * size
	for i := 0; row > 0 && row*i+row <= len(pixels); i++ {
		mask := make([]byte, m.W*m.H)
		for p := range mask {
			mask[p] = pixels[row*i+p*size]
		}
		m.at(i).mask = mask
	}
	return nil
}

// readMask reads the class of each pixel. Class 0 is left without a color if it is the background:
// it has that name, or the classes have no names. A mask of another size than its image is left
// out, as verify reports it.
func (r *Reader) readMask(m *Marks, get Record) error {
	if r.mask == nil {
		return nil
	}
	spec, b, err := get(r.mask.Name)
	if err != nil {
		return err
	}
	if spec.IsBytes() {
		numbers, err := r.decoder.Numbers(b)
		if err != nil {
			return err
		}
		if numbers.W != m.W || numbers.H != m.H {
			return nil // which verify reports
		}
		spec.DType, b = numbers.DType, numbers.Pix
	}
	size := spec.DType.Size()
	if len(b) < m.W*m.H*size {
		return nil
	}
	names := r.mask.Classes
	background := len(names) == 0 || names[0] == "background"
	colors := make(map[int64]pixel)
	m.classes = make([]pixel, m.W*m.H)
	for p := range m.classes {
		n := whole(b[p*size:], size)
		if n == 0 && background || n == ignored && size == 1 && len(names) <= ignored {
			continue
		}
		c, known := colors[n]
		if !known {
			name := strconv.FormatInt(n, 10)
			if n >= 0 && n < int64(len(names)) {
				name = names[n]
			}
			number := int(n)
			if background {
				number--
			}
			c = pixel(r.colorOf(name, number)%len(palette) + 1)
			colors[n] = c
		}
		m.classes[p] = c
	}
	return nil
}

// className returns the name of a class, or its number as text.
func (r *Reader) className(n int64) string {
	if n >= 0 && n < int64(len(r.labels.Classes)) {
		return r.labels.Classes[n]
	}
	return strconv.FormatInt(n, 10)
}

// colorOf returns the color number of a class, and remembers it for the legend. A class of one name
// has one color, in boxes and masks.
func (r *Reader) colorOf(name string, number int) int {
	if c, known := r.seen[name]; known {
		return c
	}
	r.seen[name] = max(number, 0)
	return r.seen[name]
}

// Entry is a class in the legend, and the number of its color: see Color.
type Entry struct {
	Name  string
	Color int
}

// Legend returns the classes that were seen so far, in the order of their colors.
func (r *Reader) Legend() (list []Entry) {
	for name, c := range r.seen {
		list = append(list, Entry{name, c})
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Color, b.Color), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// numbers returns the integers of a field; nil if f is nil.
func (r *Reader) numbers(get Record, f *store.Field) (list []int64, err error) {
	if f == nil {
		return nil, nil
	}
	spec, b, err := get(f.Name)
	for size := spec.DType.Size(); err == nil && len(b) >= size; b = b[size:] {
		list = append(list, whole(b, size))
	}
	return list, err
}

// whole returns the integer in b as if it were unsigned; only 8-byte integers keep their sign.
// Labels are not negative, so this is enough.
func whole(b []byte, size int) int64 {
	var word [8]byte
	copy(word[:], b[:size])
	return int64(binary.LittleEndian.Uint64(word[:]))
}

// floats returns the float32 values of a field; nil if f is nil.
func floats(get Record, f *store.Field) (list []float32, err error) {
	if f == nil {
		return nil, nil
	}
	_, b, err := get(f.Name)
	for ; err == nil && len(b) >= 4; b = b[4:] {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return list, err
}
