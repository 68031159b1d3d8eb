package layout

import (
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// Windows says what windows at random places of a file's arrays cost. A window is a box of
// elements, such as 24 hours of a part of a map; Window has its sizes by the names or numbers of
// axes.
type Windows struct {
	Path   string          `json:"path"`
	Window map[string]int  `json:"window"`
	Arrays []WindowedArray `json:"arrays"`
}

// WindowedArray says what reading windows of one array costs. Counts of bytes and chunks are
// averages per window.
type WindowedArray struct {
	Field  string   `json:"field"`
	DType  string   `json:"dtype"`
	Shape  []int    `json:"shape"`
	Axes   []string `json:"axes"`
	Window []int    `json:"window"`
	Bytes  int64    `json:"bytes"`            // of the window's elements
	Chunk  []int    `json:"chunk,omitempty"`  // the shape of a chunk; nil if the array is not chunked
	Read   float64  `json:"read"`             // bytes that are decoded or, without chunks, read from a file that is not in memory
	Chunks float64  `json:"chunks,omitempty"` // chunks that are touched

	// Best is the cheapest chunk shape on a local disk, with its costs.
	Best       []int   `json:"best"`
	BestRead   float64 `json:"best_read"`
	BestChunks float64 `json:"best_chunks"`
	Remote     []int   `json:"remote"`            // the cheapest chunk shape in a bucket
	Command    string  `json:"command,omitempty"` // writes chunks of shape Best; "" if they are not clearly better
}

// The cost of a chunk besides its bytes, expressed in bytes: a call of the decoder on a local disk,
// and a request to a bucket.
const (
	localChunk  = 20 << 10
	remoteChunk = 2 << 20
)

// pageBytes is the size of a page: an unchunked array is read in whole pages.
const pageBytes = 4096

// ReadWindows estimates the costs of windows in all arrays that have at least one of the axes. An
// axis is named by the dimension or by its number. A window that is larger than the axis, or an
// axis that no array has, is an error.
func ReadWindows(path string, window map[string]int) (*Windows, error) {
	ds, err := mmapds.Open(path)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	w := &Windows{Path: path, Window: window, Arrays: []WindowedArray{}}
	used, all := make(map[string]bool), []string(nil)
	for _, f := range ds.Schema().Fields {
		if f.Ragged || len(f.Shape) == 0 && slices.Equal(f.Dims, []string{f.Name}) { // coordinates, which are small
			continue
		}
		a := WindowedArray{Field: f.Name, DType: f.DType.String(), Shape: append([]int{ds.Len()}, f.Shape...),
			Chunk: ds.ChunkShape(f.Name)}
		cut := false
		for k, n := range a.Shape {
			name, size := strconv.Itoa(k), n
			if len(f.Dims) == len(a.Shape) && f.Dims[k] != "" {
				name = f.Dims[k]
			}
			for _, axis := range []string{name, strconv.Itoa(k)} {
				if want, ok := window[axis]; ok {
					if want > n {
						return nil, fmt.Errorf("%s: a window of %d of axis %s, which has %d elements in %q", path, want, axis, n,
							f.Name)
					}
					size, cut, used[axis] = want, true, true
				}
			}
			a.Axes, a.Window = append(a.Axes, name), append(a.Window, size)
		}
		all = append(all, f.Name+" has "+strings.Join(a.Axes, ", "))
		if cut {
			a.measure(f.DType.Size())
			a.advise(path, f.DType.Size())
			w.Arrays = append(w.Arrays, a)
		}
	}
	for _, axis := range slices.Sorted(maps.Keys(window)) {
		if !used[axis] {
			return nil, fmt.Errorf("%s: there is no axis %q; there are: %s", path, axis, strings.Join(all, "; "))
		}
	}
	return w, nil
}

// measure sets the cost of a window with the array's present chunks. Without chunks, a window is
// runs of adjacent bytes, and a run of n bytes at a random address touches n+pageBytes-1 bytes of
// pages on average.
func (a *WindowedArray) measure(elem int) {
	a.Bytes = int64(tensor.Shape(a.Window).Elems()) * int64(elem)
	if a.Chunk != nil {
		a.Chunks, a.Read = a.cost(a.Chunk, elem)
		return
	}
	run, runs, whole := elem, 1, true // of bytes that are next to each other
	for k := len(a.Shape) - 1; k >= 0; k-- {
		if whole {
			run *= a.Window[k]
		} else {
			runs *= a.Window[k]
		}
		whole = whole && a.Window[k] == a.Shape[k]
	}
	a.Read = float64(runs) * float64(run+pageBytes-1)
}

// cost returns how many chunks of a shape a window at a random place touches on average, and their
// bytes. Along one axis, w elements touch 1 + (w-1)/c chunks of c elements on average, if the
// window is not the whole axis. Every chunk is counted with its full size, which is stored at the
// border, too.
func (a *WindowedArray) cost(chunk []int, elem int) (chunks, read float64) {
	chunks, size := 1.0, float64(elem)
	for k, n := range a.Shape {
		c := min(chunk[k], n)
		if a.Window[k] == n {
			chunks *= float64((n + c - 1) / c)
		} else {
			chunks *= 1 + float64(a.Window[k]-1)/float64(c)
		}
		size *= float64(chunk[k])
	}
	return chunks, chunks * size
}

// advise sets the cheapest chunk shapes. It sets the command only if they save at least a fifth of
// the cost: rewriting a dataset for less is not worth the time.
func (a *WindowedArray) advise(path string, elem int) {
	a.Best, a.Remote = a.best(localChunk, elem), a.best(remoteChunk, elem)
	a.BestChunks, a.BestRead = a.cost(a.Best, elem)
	if a.BestRead+a.BestChunks*localChunk > 0.8*(a.Read+a.Chunks*localChunk) {
		return
	}
	var sizes []string
	for k, c := range a.Best {
		if c < a.Shape[k] {
			sizes = append(sizes, fmt.Sprintf("%s=%d", a.Axes[k], c))
		}
	}
	if sizes == nil {
		return
	}
	dest := strings.TrimSuffix(path, filepath.Ext(path)) + ".windows.zarr"
	field, ok := shell.Quote(a.Field)
	axes, named := shell.Quote(strings.Join(sizes, ","))
	if ok && named {
		a.Command = shell.Penstock("preprocess --fields "+field+" --rechunk "+axes, path, dest)
	}
}

// A chunk has at most 64 MiB, and an array at most 100,000 chunks, since each chunk is a file.
const (
	mostChunk  = 64 << 20
	mostChunks = 100_000
)

// best returns the chunk shape with which a window costs least, if each touched chunk costs `each`
// bytes besides its own. It descends along one axis at a time, from about the window's own shape,
// over sizes that grow by a quarter, until a round improves nothing. Axes that windows do not cut
// stay whole, unless the chunk would be too large.
func (a *WindowedArray) best(each float64, elem int) []int {
	chunk := slices.Clone(a.Window)
	bytesOf := func() int { return elem * tensor.Shape(chunk).Elems() }
	least := min(mostChunk, elem*tensor.Shape(a.Shape).Elems()/mostChunks)
	for k := len(chunk) - 1; bytesOf() < least; k = (k + len(chunk) - 1) % len(chunk) {
		chunk[k] = min(a.Shape[k], 2*chunk[k])
	}
	for bytesOf() > mostChunk {
		k := 0
		for i := range chunk {
			if chunk[i] > chunk[k] {
				k = i
			}
		}
		chunk[k] = (chunk[k] + 1) / 2
	}
	total := func() float64 {
		chunks, read := a.cost(chunk, elem)
		return read + chunks*each
	}
	for range 20 {
		before := total()
		for k, n := range a.Shape {
			if a.Window[k] == n && chunk[k] == n {
				continue
			}
			keep, cheapest := chunk[k], total()
			for c := 1; ; c = max(c+1, int(math.Round(float64(c)*1.25))) {
				chunk[k] = min(c, n)
				if n := bytesOf(); n <= mostChunk && n >= least {
					if cost := total(); cost < cheapest {
						keep, cheapest = chunk[k], cost
					}
				}
				if c >= n {
					break
				}
			}
			chunk[k] = keep
		}
		if total() >= before {
			break
		}
	}
	return chunk
}

// reads formats a number of bytes per window.
func (a *WindowedArray) reads(n float64) string {
	return fmt.Sprintf("%s, %.1f bytes read per byte used", units.Bytes(int64(n)), n/float64(a.Bytes))
}

// Render prints the costs.
func (w *Windows) Render(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", shell.Line(w.Path))
	for _, a := range w.Arrays {
		fmt.Fprintf(&b, "\n%s  %s%v over %s\n", shell.Line(a.Field), a.DType, tensor.Shape(a.Shape),
			shell.Line(strings.Join(a.Axes, ", ")))
		t := cli.Table{Indent: 2}
		t.Add("window", fmt.Sprint(tensor.Shape(a.Window)), units.Bytes(a.Bytes))
		how, count := "not in chunks: pages of a cold file", ""
		if a.Chunk != nil {
			how, count = "chunks of "+fmt.Sprint(tensor.Shape(a.Chunk)), fmt.Sprintf("%.1f chunks, ", a.Chunks)
		}
		t.Add("now", how, count+a.reads(a.Read))
		t.Add("best", "chunks of "+fmt.Sprint(tensor.Shape(a.Best)), fmt.Sprintf("%.1f chunks, ", a.BestChunks)+
			a.reads(a.BestRead))
		t.Add("in a bucket", "chunks of "+fmt.Sprint(tensor.Shape(a.Remote)))
		b.WriteString(t.String())
		if a.Command != "" {
			fmt.Fprintf(&b, "  To write them: %s\n", a.Command)
		} else {
			b.WriteString("  No other chunks are better by a fifth.\n")
		}
	}
	b.WriteString("\nAverages for windows at random places, each read without the others. An order that reads each " +
		"chunk once needs less.\n")
	_, err := io.WriteString(out, b.String())
	return err
}
