package field

import (
	"cmp"
	"sync"

	"github.com/penstock/penstock/internal/imagefile"
)

// decodeBudget limits what the pixels of large images take that are decoded whole, in all workers together: images of
// formats but JPEG, which is decoded by rows.
type decodeBudget struct {
	mu   sync.Mutex
	more sync.Cond
	most int64
	free int64
}

const (
	defaultDecode = 512 << 20 // bytes of pixels where --memory says nothing
	smallImage    = 4 << 20   // bytes that do not count
)

func newDecodeBudget(memory int64) *decodeBudget {
	b := &decodeBudget{most: cmp.Or(memory, defaultDecode)}
	b.free, b.more.L = b.most, &b.mu
	return b
}

// take waits until the pixels of an image have room, and returns how to give it back. An image that is larger than all
// there is is decoded alone.
func (b *decodeBudget) take(v imageValue) (done func()) {
	n := int64(0)
	if b != nil {
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
		b.more.Broadcast()
	}
}

// pixelBytes returns what the pixels of a file take, 0 of one that is not decoded whole.
func pixelBytes(v imageValue) int64 {
	c := v.file.Config
	if v.err != nil || c.Format == imagefile.JPEG {
		return 0
	}
	return int64(c.Width) * int64(c.Height) * int64(max(4, c.Channels)) * int64(max(1, (c.Bits+7)/8))
}

// LimitDecoding has the jobs for images hold at most memory bytes of pixels that are decoded whole, or one image; 0 is
// a default.
func LimitDecoding(jobs []Job, memory int64) {
	b := newDecodeBudget(memory)
	for _, j := range jobs {
		if f, ok := j.(*imageField); ok {
			f.budget = b
		}
	}
}
