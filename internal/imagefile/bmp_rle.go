package imagefile

// unpack decodes run lengths (BITMAPINFOHEADER's BI_RLE8 and BI_RLE4) to an index a byte, in
// rows without gaps. Skipped pixels have index 0.
func (b *bmpHeader) unpack(data []byte) ([]byte, error) {
	r := bmpRuns{data: data, pos: b.pixels, w: b.w, size: b.w * b.h, nibbles: b.bits == 4}
	for len(r.out) < r.size && r.step() {
	}
	if len(r.out) < r.size {
		return nil, corrupt(BMP, "truncated at byte %d: the runs end at pixel %d of %d", min(r.pos, len(data)), len(r.out), r.size)
	}
	return r.out[:r.size], nil
}

// bmpRuns is the state of unpack.
type bmpRuns struct {
	data    []byte
	pos     int
	w, size int
	nibbles bool // two indices a byte
	x       int  // column that is next
	out     []byte
}

// take returns the next n bytes, fewer at the end of the file.
func (r *bmpRuns) take(n int) []byte {
	from := min(r.pos, len(r.data))
	r.pos = min(from+n, len(r.data))
	return r.data[from:r.pos]
}

// step takes one run, and returns false at the end.
func (r *bmpRuns) step() bool {
	const endOfLine, endOfBitmap, delta = 0, 1, 2
	pair := r.take(2)
	if len(pair) < 2 {
		return false
	}
	if n := int(pair[0]); n > 0 {
		r.repeat(min(n, r.w-r.x), pair[1])
		return true
	}
	switch pair[1] {
	case endOfLine:
		r.zeros((r.w - len(r.out)%r.w) % r.w)
		r.x = 0
	case endOfBitmap:
		return false
	case delta:
		by := r.take(2)
		if len(by) < 2 {
			return false
		}
		r.zeros(min(r.size-len(r.out), int(by[0])+int(by[1])*r.w))
		r.x = len(r.out) % r.w
	default:
		return r.literal(int(pair[1]))
	}
	return true
}

// repeat adds n times the index v, or by turns the two that it holds. Pixels beyond the
// end of a row are left out.
func (r *bmpRuns) repeat(n int, v byte) {
	for i := range max(n, 0) {
		index := v
		if r.nibbles {
			index = v >> (4 - 4*(i&1)) & 15
		}
		r.out = append(r.out, index)
	}
	r.x += max(n, 0)
}

func (r *bmpRuns) zeros(n int) { r.out = append(r.out, make([]byte, n)...) }

// literal adds n indices as they are, and skips what makes the place in the file even.
func (r *bmpRuns) literal(n int) bool {
	count := min(n, r.size-len(r.out))
	length := count
	if r.nibbles {
		length = (count + 1) / 2
	}
	got := r.take(length)
	if len(got) < length {
		return false
	}
	for i := range count {
		if r.nibbles {
			r.out = append(r.out, got[i/2]>>(4-4*(i&1))&15)
		} else {
			r.out = append(r.out, got[i])
		}
	}
	r.x += n
	r.pos += r.pos & 1
	return true
}
