package field

import (
	"cmp"
	"sync"

	"github.com/penstock/penstock/internal/imagefile"
)

// decodeBudget limits the memory of large images that all workers together decode whole. JPEGs are decoded row by
// row and do not count. A nil budget has no limit.
type decodeBudget struct {
	mu   sync.Mutex
	more sync.Cond
	most int64 // bytes in all
	free int64 // bytes that no image has taken
}

const (
	defaultDecode = 512 << 20 // bytes of pixels without --memory
	smallImage    = 4 << 20   // bytes below which an image does not count
)

// newDecodeBudget returns a budget of memory bytes; 0 means defaultDecode.
func newDecodeBudget(memory int64) *decodeBudget {
	b := &decodeBudget{most: cmp.Or(memory, defaultDecode)}
	b.free, b.more.L = b.most, &b.mu
	return b
}

// take waits until there is room for the pixels of an image, and returns the function that frees it. An image that
// is larger than the whole budget is decoded alone.
func (b *decodeBudget) take(v imageValue) (done func()) {
	n := int64(0)
	if b != nil {
		// An image of any size gets its turn when nothing else is decoded.
		n = min(pixelBytes(v), b.most)
	}
	if n < smallImage {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.free < n {
		b.more.Wait()
	}
	b.free -= n
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.free += n
		// Several smaller images may have room now, and not only the first that waits.
		b.more.Broadcast()
	}
}

// pixelBytes returns the bytes that decoding a file takes, by its header; 0 if it is not decoded whole.
func pixelBytes(v imageValue) int64 {
	c := v.file.Config
	if v.err != nil || c.Format == imagefile.JPEG {
		return 0
	}
	return int64(c.Width) * int64(c.Height) * int64(max(4, c.Channels)) * int64(max(1, (c.Bits+7)/8))
}

// LimitDecoding limits the pixels that the jobs for images decode whole at one time to memory bytes, or one image;
// 0 means a default.
func LimitDecoding(jobs []Job, memory int64) {
	b := newDecodeBudget(memory)
	for _, j := range jobs {
		if f, ok := j.(*imageField); ok {
			f.budget = b
		}
	}
}
