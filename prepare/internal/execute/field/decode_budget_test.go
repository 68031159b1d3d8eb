package field

import (
	"bytes"
	"image"
	"image/png"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Images that are decoded at once take no more than the budget together; one that is larger than it is decoded alone, and small
// ones always.
func TestDecodeBudget(t *testing.T) {
	file := func(side int) imageValue {
		var b bytes.Buffer
		require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))))
		return (&fileOpener{}).parse(b.Bytes())
	}
	large, larger, small := file(1100), file(2100), file(100) // 4.6 and 16.8 MiB, and 40 KB
	b := newDecodeBudget(10 << 20)
	b.take(small)() // which does not count
	var mu sync.Mutex
	var wg sync.WaitGroup
	held, most := int64(0), int64(0)
	for i := range 40 {
		data := large
		if i%5 == 0 {
			data = larger
		}
		wg.Go(func() {
			done := b.take(data)
			defer done()
			n := min(pixelBytes(data), b.most)
			mu.Lock()
			held += n
			most = max(most, held)
			mu.Unlock()
			b.take(small)() // does not wait
			mu.Lock()
			held -= n
			mu.Unlock()
		})
	}
	wg.Wait()
	if most > b.most || most == 0 || b.free != b.most {
		t.Errorf("%d bytes at once, of %d; %d free", most, b.most, b.free)
	}
	(*decodeBudget)(nil).take(larger)()
}
