package geometry

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Group is an image of a record, and the fields that move with its pixels.
type Group struct {
	Image   int   // its position among the fields
	Follows []int // masks, boxes and keypoints on it, and fields of instances that a SanitizeBoundingBoxes removes
}

// Follower is a field that moves with an image's pixels.
type Follower struct {
	In    tensor.Spec  // as it is stored
	DType tensor.DType // of masks that are files: what their numbers become; Invalid means Uint8
	Kept  bool         // masks that are files stay files: PNG, where they move
	Sized bool         // the image's size is known only once the image is made: then masks get memory of that size
}

// Output returns the spec of the follower for an image whose spec becomes out.
func (f Follower) Output(out transforms.Info) tensor.Spec {
	s := f.In
	switch {
	case s.Content != tensor.Mask:
	case s.IsBytes() && f.Kept:
	case isStack(s):
		s.DType, s.Shape = cmp.Or(f.DType, tensor.Uint8), tensor.Shape{out.H, out.W}
	case s.IsBytes():
		s.DType, s.Ragged, s.Shape = cmp.Or(f.DType, tensor.Uint8), false, tensor.Shape{out.H, out.W}
	case s.Layout == tensor.HWC:
		s.Shape = tensor.Shape{out.H, out.W, 1}
	case s.Layout == tensor.CHW:
		s.Shape = tensor.Shape{1, out.H, out.W}
	default:
		s.Shape = tensor.Shape{out.H, out.W}
	}
	return s
}

// isStack reports whether a record is one file that holds the masks of all instances, one below the
// other.
func isStack(s tensor.Spec) bool {
	return s.Content == tensor.Mask && s.IsBytes() && s.Instances != ""
}

// Mover moves the followers of an image, for one goroutine. The calls for each record are Begin
// with the stored followers, then [transforms.Runner.DoMoves] for the image, then Finish. The order
// is necessary: some crops are chosen by the boxes, so that Begin comes first, and the moves are
// known only after the image was planned. Buffers are reused from record to record.
type Mover struct {
	follows   []Follower
	sanitizes bool            // the pipeline removes invalid boxes
	removes   map[string]bool // by content: whether the pipeline may remove rows
	decoder   *imagefile.Decoder
	masks     transforms.MaskMover
	boxes     [][]float32 // by follower: its boxes or keypoints
	good      [][]bool    // by follower: whether each box was valid before the moves
	keep      [][]bool    // by follower: which rows are kept; nil for all
	rows      []bool      // memory for keep of boxes
	numbers   []byte      // decoded numbers of a mask file
	rowsOf    []byte      // memory for the masks of a file
	plane     []byte      // one mask of a bitmap
}

// NewMover returns a Mover for the followers of images that pipeline p transforms.
func NewMover(p *transforms.Pipeline, follows []Follower, maxPixels int) *Mover {
	n := len(follows)
	sanitizes := has[transforms.SanitizeBoundingBoxes](p)
	return &Mover{
		follows: follows, sanitizes: sanitizes,
		removes: map[string]bool{
			tensor.Boxes:     sanitizes || has[transforms.FixedSizeCrop](p),
			tensor.Keypoints: has[transforms.SanitizeKeyPoints](p),
		},
		decoder: imagefile.New(imagefile.Options{MaxPixels: maxPixels}),
		boxes:   make([][]float32, n), good: make([][]bool, n), keep: make([][]bool, n),
	}
}

// has reports whether a pipeline has an operation of type T.
func has[T transforms.Transform](p *transforms.Pipeline) bool {
	for _, t := range p.Transforms() {
		if _, is := t.(T); is {
			return true
		}
	}
	return false
}

// Begin reads the boxes among the stored followers, and returns the boxes that a crop may be chosen
// by; nil if the image has none. An invalid box is an error, unless the pipeline removes invalid
// boxes. Such a box is cleared, because no crop may be chosen by it.
func (m *Mover) Begin(src [][]byte) (choose []float32, err error) {
	for i, f := range m.follows {
		if f.In.Content != tensor.Boxes {
			continue
		}
		b := floats(m.boxes[i][:0], src[i])
		m.boxes[i] = b
		m.good[i] = pixel.Grow(m.good[i], len(b)/4)
		for k := range m.good[i] {
			err := transforms.CheckBoxes(b[4*k : 4*k+4])
			if m.good[i][k] = err == nil; err != nil && !m.sanitizes {
				return nil, fmt.Errorf("%s: %w; SanitizeBoundingBoxes removes such boxes", f.In.Name, transforms.CheckBoxes(b))
			}
			if err != nil { // which no part of the image shall be chosen by
				clear(b[4*k : 4*k+4])
			}
		}
		if choose == nil {
			choose = b
		}
	}
	return choose, nil
}

// floats appends stored float32 numbers to a slice. The bytes of a record need not be aligned, so
// that they cannot be viewed as float32.
func floats(to []float32, b []byte) []float32 {
	for ; len(b) >= 4; b = b[4:] {
		to = append(to, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return to
}

// Finish writes each moved follower to dst, and returns how many rows were removed. Followers of
// fixed length fill the bytes of dst; rows are appended to dst[:0]. All places are moved before
// anything is written, because a removed box also removes rows of fields that come before it.
func (m *Mover) Finish(moves *transforms.Moves, dst, src [][]byte) (removed int, err error) {
	if removed, err = m.movePlaces(moves, src); err != nil {
		return removed, err
	}
	for i, f := range m.follows {
		if f.In.Ragged && !f.In.IsBytes() || isStack(f.In) {
			dst[i] = dst[i][:0]
		}
		switch f.In.Content {
		case tensor.Boxes:
			dst[i] = m.put(dst[i], i, m.boxes[i], 4)
		case tensor.Keypoints:
			dst[i] = m.put(dst[i], i, m.boxes[i], f.In.Shape.Elems())
		case tensor.Mask:
			dst[i], err = m.mask(moves, dst[i], src[i], i)
		default:
			dst[i] = m.copyRows(dst[i], src[i], i)
		}
		if err != nil {
			return removed, fmt.Errorf("%s: %w", f.In.Name, err)
		}
	}
	return removed, nil
}

// movePlaces moves all boxes and keypoints, and decides which rows are kept.
func (m *Mover) movePlaces(moves *transforms.Moves, src [][]byte) (removed int, err error) {
	clear(m.keep)
	for i, f := range m.follows {
		each := 1 // places of a row
		switch f.In.Content {
		case tensor.Boxes:
			m.rows = pixel.Grow(m.rows, len(m.boxes[i])/4)
			moves.Boxes(m.boxes[i], m.rows)
			for k := range m.rows {
				m.rows[k] = m.rows[k] && m.good[i][k]
			}
		case tensor.Keypoints:
			m.boxes[i] = floats(m.boxes[i][:0], src[i])
			n := f.In.Shape[len(f.In.Shape)-1]
			m.rows = pixel.Grow(m.rows, len(m.boxes[i])/n)
			moves.Points(m.boxes[i], n, m.rows)
			each = f.In.Shape.Elems() / n
		default:
			continue
		}
		if !f.In.Ragged || !m.removes[f.In.Content] {
			continue
		}
		lost, err := m.drop(i, each, src)
		if removed += lost; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// drop removes the rows of follower i whose places were cropped away, and the rows of the same
// instances in other fields. It returns the number of removed rows.
func (m *Mover) drop(i, each int, src [][]byte) (removed int, err error) {
	n := len(m.rows) / each
	keep := m.keep[i]
	if keep == nil {
		m.good[i] = pixel.Grow(m.good[i], n)
		keep = m.good[i]
		for k := range keep {
			keep[k] = true
		}
		if err := m.share(i, n, keep, src); err != nil {
			return 0, err
		}
	}
	for k := range keep {
		if keep[k] && slices.Contains(m.rows[k*each:(k+1)*each], false) {
			keep[k] = false
			removed++
		}
	}
	return removed, nil
}

// share makes all fields of the same instances use one list of kept rows with follower i, which has
// n rows. Fields with another number of rows are an error: removing row k of each would then remove
// different instances.
func (m *Mover) share(i, n int, keep []bool, src [][]byte) error {
	f := m.follows[i]
	m.keep[i] = keep
	for k, g := range m.follows {
		if g.In.Instances == "" || g.In.Instances != f.In.Instances || k == i {
			continue
		}
		if rows := len(src[k]) / g.In.RecordBytes(); rows != n && !isStack(g.In) {
			return fmt.Errorf("%s has %d rows and %s has %d; fields of the instances %q have one number of rows a record",
				f.In.Name, n, g.In.Name, rows, f.In.Instances)
		}
		m.keep[k] = keep
	}
	return nil
}

// put writes the kept rows of n float32 numbers each.
func (m *Mover) put(dst []byte, i int, values []float32, n int) []byte {
	if !m.follows[i].In.Ragged {
		for k, v := range values {
			binary.LittleEndian.PutUint32(dst[4*k:], math.Float32bits(v))
		}
		return dst
	}
	for k := 0; k*n < len(values); k++ {
		if m.keep[i] != nil && !m.keep[i][k] {
			continue
		}
		for _, v := range values[k*n : (k+1)*n] {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	}
	return dst
}

// copyRows copies the kept rows of a follower that has no places.
func (m *Mover) copyRows(dst, src []byte, i int) []byte {
	size := m.follows[i].In.RecordBytes()
	if m.keep[i] == nil {
		return append(dst, src...)
	}
	for k, kept := range m.keep[i] {
		if kept {
			dst = append(dst, src[k*size:(k+1)*size]...)
		}
	}
	return dst
}

// mask moves one mask, or the masks of all kept instances.
func (m *Mover) mask(moves *transforms.Moves, dst, src []byte, i int) ([]byte, error) {
	f := m.follows[i]
	size := f.In.DType.Size()
	switch {
	case isStack(f.In):
		return m.stack(moves, dst, src, i)
	case f.In.IsBytes() && f.Kept:
		return m.file(moves, dst[:0], src)
	case f.In.IsBytes():
		numbers, err := m.numbersOf(moves, src, cmp.Or(f.DType, tensor.Uint8))
		if err != nil {
			return dst, err
		}
		size = cmp.Or(f.DType, tensor.Uint8).Size()
		dst = f.whole(dst, moves, size)
		return dst, m.masks.Move(dst, numbers, size, moves)
	case !f.In.Ragged:
		dst = f.whole(dst, moves, size)
		return dst, m.masks.Move(dst, src, size, moves)
	}
	w, h := moves.Size()
	row := f.In.RecordBytes()
	for k := 0; k*row < len(src); k++ {
		if m.keep[i] != nil && !m.keep[i][k] {
			continue
		}
		at := len(dst)
		dst = grown(dst, w*h*size)
		if err := m.masks.Move(dst[at:], src[k*row:(k+1)*row], size, moves); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// whole returns memory for a mask with elements of size bytes. The batch provides the memory,
// except for images that have sizes of their own.
func (f Follower) whole(dst []byte, moves *transforms.Moves, size int) []byte {
	if !f.Sized {
		return dst
	}
	w, h := moves.Size()
	return grown(dst[:0], w*h*size)
}

// file moves a mask that remains a file. If no pixel moves, the stored file is copied: nothing
// is decoded, and the bytes stay the same.
func (m *Mover) file(moves *transforms.Moves, dst, src []byte) ([]byte, error) {
	r, err := m.decoder.Numbers(src)
	if err != nil {
		return dst, err
	}
	if w, h := moves.Before(); r.W != w || r.H != h {
		return dst, fmt.Errorf("the mask is %dx%d pixels and its image %dx%d", r.W, r.H, w, h)
	}
	if moves.IsStill() {
		return append(dst, src...), nil
	}
	w, h := moves.Size()
	size := r.DType.Size()
	m.numbers = pixel.Grow(m.numbers, w*h*size)
	if err := m.masks.Move(m.numbers, r.Pix, size, moves); err != nil {
		return dst, err
	}
	return appendPNG(dst, m.numbers, w, h, size)
}

// stack moves the masks of all kept instances, which lie one below the other in a file. Bitmaps are
// unpacked one mask at a time: all masks of a file as bytes would need eight times the memory.
func (m *Mover) stack(moves *transforms.Moves, dst, src []byte, i int) ([]byte, error) {
	f := m.follows[i]
	w, h := moves.Before()
	r, n := transforms.Raster{DType: tensor.Uint8}, 0
	var bits imagefile.Bitmap
	ofBits := false
	if len(src) > 0 {
		var err error
		if bits, ofBits = m.decoder.Bits(src); ofBits {
			r.W, r.H = bits.W, bits.H
			m.plane = pixel.Grow(m.plane, w*h)
		} else if r, err = m.decoder.Numbers(src); err != nil {
			return dst, err
		}
		if n = r.H / max(h, 1); r.W != w || n*h != r.H {
			return dst, fmt.Errorf("masks of %dx%d pixels, one below the other, on an image of %dx%d", r.W, r.H, w, h)
		}
	}
	if err := m.checkRows(i, n); err != nil {
		return dst, err
	}
	if f.Kept && moves.IsStill() && m.keep[i] == nil {
		return append(dst, src...), nil
	}
	dt, row := cmp.Or(f.DType, tensor.Uint8), w*h*r.DType.Size()
	if f.Kept {
		dt = r.DType
	}
	outW, outH := moves.Size()
	out := dst
	if f.Kept {
		out = m.rowsOf[:0]
	}
	for k := range n {
		if m.keep[i] != nil && !m.keep[i][k] {
			continue
		}
		numbers := m.plane
		if ofBits {
			bits.Bytes(numbers, k*h, (k+1)*h)
		} else {
			numbers = r.Pix[k*row : (k+1)*row]
		}
		if r.DType != dt {
			var err error
			if numbers, err = Widen(&m.numbers, transforms.Raster{W: w, H: h, DType: r.DType, Pix: numbers}, dt); err != nil {
				return dst, err
			}
		}
		at := len(out)
		out = grown(out, outW*outH*dt.Size())
		if err := m.masks.Move(out[at:], numbers, dt.Size(), moves); err != nil {
			return dst, err
		}
	}
	if !f.Kept {
		return out, nil
	}
	if m.rowsOf = out; len(out) == 0 {
		return dst[:0], nil
	}
	return appendPNG(dst[:0], out, outW, len(out)/(outW*dt.Size()), dt.Size())
}

// checkRows returns an error if boxes of the same instances do not have n rows.
func (m *Mover) checkRows(i, n int) error {
	f := m.follows[i]
	for k, g := range m.follows {
		if g.In.Content == tensor.Boxes && g.In.Instances == f.In.Instances && len(m.boxes[k]) != 4*n {
			return fmt.Errorf("%d masks, and %s has %d rows; fields of the instances %q have one number of rows a record", n,
				g.In.Name, len(m.boxes[k])/4, f.In.Instances)
		}
	}
	return nil
}

// appendPNG appends a gray PNG of numbers of the given size. A mask of 0 and 1 is written with one
// bit per pixel.
func appendPNG(dst, numbers []byte, w, h, size int) ([]byte, error) {
	if size == 1 && len(numbers) > 0 && slices.Max(numbers) <= 1 {
		m := imagefile.NewBitmap(nil, w, h)
		for y := range h {
			m.Pack(y, numbers[y*w:(y+1)*w])
		}
		return m.Append(dst)
	}
	rect := image.Rect(0, 0, w, h)
	var img image.Image = &image.Gray{Pix: numbers, Stride: w, Rect: rect}
	if size == 2 {
		for i := 0; i < len(numbers); i += 2 { // which image.Gray16 has the other way round
			numbers[i], numbers[i+1] = numbers[i+1], numbers[i]
		}
		img = &image.Gray16{Pix: numbers, Stride: 2 * w, Rect: rect}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return dst, err
	}
	return append(dst, b.Bytes()...), nil
}

// grown returns b with n more bytes of arbitrary content. The capacity doubles, as append does, but
// the new bytes are not cleared when memory is reused.
func grown(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = append(make([]byte, 0, max(2*cap(b), len(b)+n)), b...)
	}
	return b[:len(b)+n]
}

// numbersOf decodes a mask's file to elements of type dt.
func (m *Mover) numbersOf(moves *transforms.Moves, file []byte, dt tensor.DType) ([]byte, error) {
	r, err := m.decoder.Numbers(file)
	if err != nil {
		return nil, err
	}
	if w, h := moves.Before(); r.W != w || r.H != h {
		return nil, fmt.Errorf("the mask is %dx%d pixels and its image %dx%d", r.W, r.H, w, h)
	}
	if r.DType == dt {
		return r.Pix, nil
	}
	return Widen(&m.numbers, r, dt)
}

// Widen converts the numbers of a mask to another integer type, in memory that grows. A number that
// the type cannot hold is an error: a class that wraps around would be another class.
func Widen(memory *[]byte, r transforms.Raster, dt tensor.DType) ([]byte, error) {
	from, to := r.DType.Size(), dt.Size()
	if dt.IsFloat() || dt == tensor.Bool {
		return nil, fmt.Errorf("masks become integers, not %v", dt)
	}
	most := uint64(1)<<(8*to-1) - 1
	if dt == tensor.Uint8 || dt == tensor.Uint16 || dt == tensor.Uint32 || dt == tensor.Uint64 {
		most = 2*most + 1
	}
	n := len(r.Pix) / from
	*memory = pixel.Grow(*memory, n*to)
	out := *memory
	for i := range n {
		v := uint64(r.Pix[i*from])
		if from == 2 {
			v |= uint64(r.Pix[i*from+1]) << 8
		} else if from != 1 {
			return nil, errors.New("the mask has numbers of more than 16 bits")
		}
		if v > most {
			return nil, fmt.Errorf("the mask has the number %d, which %v does not hold; take a larger type", v, dt)
		}
		for k := range to {
			out[i*to+k] = byte(v >> (8 * k))
		}
	}
	return out, nil
}
