//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"golang.org/x/sys/unix"
)

// mappedSource is a memory whose images are a mapping of a file.
type mappedSource struct {
	*memory
	pieces bool // says that it is not one piece
}

func newMappedSource(t testing.TB, n int, shape tensor.Shape) *mappedSource {
	return mapSource(t, n, shape, unix.MAP_SHARED)
}

func mapSource(t testing.TB, n int, shape tensor.Shape, flag int) *mappedSource {
	t.Helper()
	m := newSource(n, shape)
	const header = 4096
	path := filepath.Join(t.TempDir(), "images")
	require.NoError(t, os.WriteFile(path, append(make([]byte, header), m.images...), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, header+len(m.images), unix.PROT_READ, flag)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	m.images = b[header:]
	return &mappedSource{memory: m}
}

func (m *mappedSource) Contiguous(string, int, int) bool { return !m.pieces }

// runDirect makes two epochs with images from the dataset's own memory.
func runDirect(t *testing.T, src *mappedSource, order sampler.Sampler) Stats {
	t.Helper()
	c := config{src: src, loader: loader.Options{BatchSize: 8, Sampler: order, Fields: []string{"labels"}}}
	c.opts = Options{Fields: []string{"labels"}, Direct: Direct{src, []string{"images"}}}
	r := c.mustOpen(t)
	defer r.mustClose(t)
	for epoch := range 2 {
		for b, err := range r.pf.Epoch(t.Context(), epoch) {
			require.NoError(t, err)
			require.NoError(t, r.consume(b, both...))
		}
	}
	require.NoError(t, r.check(src.memory))
	return r.pf.Stats()
}

// Images go to the device from the mapping where they are large or follow each other, and
// are gathered where they are not.
func TestDirect(t *testing.T) {
	small, large := tensor.Shape{3, 10, 10}, tensor.Shape{3, 256, 200}
	for _, c := range []struct {
		name   string
		shape  tensor.Shape
		order  sampler.Sampler
		direct bool
	}{
		{"small, in order", small, nil, true},
		{"small, shuffled", small, sampler.Shuffle{}, false},
		{"large, in order", large, nil, true},
		{"large, shuffled", large, sampler.Shuffle{}, true},
	} {
		for mode, lazy := range modes {
			t.Run(mode+"/"+c.name, func(t *testing.T) {
				src := newMappedSource(t, 20, c.shape)
				useFake(t, setting{lazy: lazy})
				st := runDirect(t, src, c.order)
				bytes := int64(2 * len(src.images))
				want := [2]int64{bytes, 0}
				if !c.direct {
					want = [2]int64{0, bytes}
				}
				if got := [2]int64{st.DirectBytes, st.StagedBytes}; got != want {
					t.Errorf("%v direct and staged, want %v", got, want)
				}
				if m := st.Direct[0]; m.Reason != "" || m.Bytes < len(src.images) || m.Field != "images" {
					t.Errorf("mapping: %+v", m)
				}
				if src.leases.Load() != 0 {
					t.Error("the Source is still leased")
				}
			})
		}
	}
}

// If the mapping cannot be page-locked, the batches are the same, and Stats states why.
func TestDirectRefused(t *testing.T) {
	shape := tensor.Shape{3, 256, 200}
	for _, c := range []struct {
		name, why string
		setting   setting
		src       func(t *testing.T) *mappedSource
	}{
		{"read-only not supported", "can only be read", setting{noReadOnly: true}, func(t *testing.T) *mappedSource { return newMappedSource(t, 20, shape) }},
		{"private", "the mapping is private", setting{}, func(t *testing.T) *mappedSource { return mapSource(t, 20, shape, unix.MAP_PRIVATE) }},
		{"not mapped", "not mapped in at most", setting{}, func(t *testing.T) *mappedSource {
			m := newMappedSource(t, 20, shape)
			m.pieces = true
			return m
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := c.src(t)
			c.setting.lazy = true
			useFake(t, c.setting)
			st := runDirect(t, src, nil)
			if m := st.Direct[0]; m.Bytes != 0 || !strings.Contains(m.Reason, c.why) {
				t.Errorf("mapping: %+v", m)
			}
			if st.DirectBytes != 0 || st.StagedBytes != int64(2*len(src.images)) {
				t.Errorf("Stats: %+v", st)
			}
		})
	}
}

// Two Prefetchers of one mapping: the driver locks it once, the second gathers.
func TestDirectTwice(t *testing.T) {
	useFake(t, setting{})
	src := newMappedSource(t, 20, tensor.Shape{3, 256, 200})
	c := config{src: src, loader: loader.Options{BatchSize: 8, Fields: []string{"labels"}}}
	c.opts = Options{Fields: []string{"labels"}, Direct: Direct{src, []string{"images"}}}
	r := c.mustOpen(t)
	defer r.mustClose(t)
	st := runDirect(t, src, nil)
	if m := st.Direct[0]; !strings.Contains(m.Reason, "ALREADY_REGISTERED") || st.DirectBytes != 0 {
		t.Errorf("Stats: %+v", st)
	}
}

func TestParseMap(t *testing.T) {
	for _, c := range []struct {
		line        string
		start, end  uint64
		private, ok bool
	}{
		{"7f1e2c000000-7f1e2c021000 r--s 00001000 08:01 5242 /data/a.npy\n", 0x7f1e2c000000, 0x7f1e2c021000, false, true},
		{"7f1e2c000000-7f1e2c021000 r--p 00001000 08:01 5242 /data/with a space\n", 0x7f1e2c000000, 0x7f1e2c021000, true, true},
		{"c000000000-c000400000 rw-p 00000000 00:00 0 \n", 0xc000000000, 0xc000400000, false, true},
		{"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n", 0xffffffffff600000, 0xffffffffff601000, false, true},
		{"", 0, 0, false, false},
		{"x-y r--p 0 0 1", 0, 0, true, false},
	} {
		start, end, private, ok := parseMap(c.line)
		if ok != c.ok || ok && (start != c.start || end != c.end || private != c.private) {
			t.Errorf("%q: %x %x %v %v", c.line, start, end, private, ok)
		}
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct{ indices, want []int }{
		{nil, nil},
		{[]int{7}, []int{0, 7, 1}},
		{[]int{1, 2, 3}, []int{0, 1, 3}},
		{[]int{5, 4, 4, 5, 9}, []int{0, 5, 1, 1, 4, 1, 2, 4, 2, 4, 9, 1}},
	} {
		var got []int
		require.NoError(t, runs(c.indices, func(at, first, n int) error { got = append(got, at, first, n); return nil }))
		if len(got) != len(c.want) || countRuns(c.indices)*3 != len(c.want) {
			t.Errorf("%v: %v, want %v", c.indices, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%v: %v, want %v", c.indices, got, c.want)
				break
			}
		}
	}
}
