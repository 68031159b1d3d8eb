package rawcache

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/transforms"
)

// Auto stores pixels that fit into half of the memory and into the cache; prepare="pixels" stores all.
func TestChoice(t *testing.T) {
	defer func(f func() int64) { memory = f }(memory)
	const pixels = 4 * 3 * 20 * 20
	head, err := transforms.Compose(transforms.Resize{Size: []int{20, 20}})
	require.NoError(t, err)
	for _, c := range []struct {
		mode          Mode
		memory, limit int64
		stored        Mode
		why           string
	}{
		{Auto, 2 * pixels, 0, Pixels, "all pixels take 4.7 KiB"},
		{Auto, 2 * pixels, pixels, Pixels, "all pixels take 4.7 KiB"},
		{Auto, 0, 0, Pixels, "all pixels take 4.7 KiB"}, // it is not known
		{Auto, 2*pixels - 1, 0, Encoded, "more than half of the memory"},
		{Auto, 2 * pixels, pixels - 1, Encoded, "more than the size of the cache"},
		{Pixels, 1, 0, Pixels, `prepare is "pixels"`},
	} {
		memory = func() int64 { return c.memory }
		src := sourceOf(t, rawtest.Folder(t, 4))
		o := Options{Mode: c.mode, Limit: c.limit, Head: func(string) (*transforms.Pipeline, error) { return head, nil }}
		got, err := o.choose(src)
		if err != nil || got.Stored != c.stored || !strings.Contains(got.Why, c.why) || (src.Head() != nil) != (c.stored == Pixels) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
