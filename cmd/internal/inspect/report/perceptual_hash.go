package report

import (
	"cmp"
	"context"
	"image"
	"math"
	"math/bits"
	"slices"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/cmd/internal/inspect/render"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/mmapds"
)

// Size of the grid of mean brightnesses that a picture is reduced to.
const (
	gridWide = 9
	gridHigh = 8
)

// imageHash is a digest of a picture that is similar for similar pictures. The hash is Neal
// Krawetz's dHash ("Kind of Like That", 2013): each bit says whether brightness rises from a cell
// to the next in its row.
type imageHash struct {
	record int
	mean   float64                   // brightness, 0 to 255
	grid   [gridWide * gridHigh]byte // row by row
	hash   uint64                    // the first step of the first row is the highest bit
	ok     bool                      // the picture could be decoded
}

// scan returns the hashes of count records, evenly spread over the dataset.
func scan(ctx context.Context, ds *mmapds.Dataset, g *render.Renderer, count, workers int, progress func(int64)) (
	[]imageHash, error) {
	out := make([]imageHash, count)
	err := dataset.InParts(ctx, count, max(1, min(count, 256)), workers, func() func(context.Context, int, int,
		int) error {
		reader, d := dataset.NewBatchReader(ds, g.Field), imagefile.New(imagefile.Options{})
		return func(ctx context.Context, _, a, b int) error {
			for i := a; i < b; i++ {
				record := dataset.Bound(ds.Len(), i, count)
				s, err := reader.Read(ctx, record, record+1)
				if err != nil {
					return err
				}
				out[i].record = record
				if img, err := g.Draw(d, s.Record(0)); err == nil {
					out[i].compute(img)
				}
			}
			progress(int64(b - a))
			return nil
		}
	})
	return out, err
}

// compute sets everything but the record.
func (g *imageHash) compute(img *image.RGBA) {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	sum := 0.0
	for cell := range g.grid {
		x0, x1 := cellEdges(cell%gridWide, gridWide, w)
		y0, y1 := cellEdges(cell/gridWide, gridHigh, h)
		m := brightnessOf(img, image.Rect(x0, y0, x1, y1))
		g.grid[cell] = byte(m + 0.5)
		sum += m
	}
	g.mean, g.ok = sum/float64(len(g.grid)), true
	for y := range gridHigh {
		for x := range gridWide - 1 {
			g.hash <<= 1
			if g.grid[y*gridWide+x+1] > g.grid[y*gridWide+x] {
				g.hash |= 1
			}
		}
	}
}

// cellEdges returns the pixels [from, to) of cell i of n. Each cell has at least one pixel, also in
// a picture that is smaller than the grid.
func cellEdges(i, n, size int) (from, to int) {
	from = min(size-1, i*size/n)
	return from, max(from+1, min(size, (i+1)*size/n))
}

// brightnessOf returns the mean luma of a rectangle, with the weights of ITU-R BT.601 in
// thousandths.
func brightnessOf(img *image.RGBA, r image.Rectangle) float64 {
	sum := 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := img.Pix[img.PixOffset(r.Min.X, y) : img.PixOffset(r.Max.X-1, y)+4]
		for ; len(row) >= 4; row = row[4:] {
			sum += 299*int(row[0]) + 587*int(row[1]) + 114*int(row[2])
		}
	}
	return float64(sum) / 1000 / float64(r.Dx()*r.Dy())
}

// pair is two records that look alike.
type pair struct {
	a, b     int     // record numbers, a before b
	distance float64 // mean difference of their grids, 0 to 255
}

// Limits for images and values that count as alike.
const (
	alikeBits   = 7  // of 64 that may differ
	alikeLevels = 4. // mean difference of brightness
	flatLevels  = 8  // pictures of less contrast than that are all alike, and left out
	alikeBucket = 2048
)

// nearDuplicates finds pairs that look alike, the most alike first. Comparing all records with each
// other would take quadratic time. If two hashes differ in at most seven bits, at least one of
// their eight bytes is equal (pigeonhole principle), so only hashes with an equal byte are
// compared. If more than alikeBucket hashes share a byte, each is compared with the alikeBucket
// after it, and some pairs may be missed.
func nearDuplicates(all []imageHash) []pair {
	found := make(map[[2]int]float64)
	for place := range 8 {
		buckets := make(map[byte][]*imageHash)
		for i := range all {
			if g := &all[i]; g.ok && g.contrast() >= flatLevels {
				key := byte(g.hash >> (8 * place))
				buckets[key] = append(buckets[key], g)
			}
		}
		for _, list := range buckets {
			pairUp(list, found)
		}
	}
	out := make([]pair, 0, len(found))
	for p, d := range found {
		out = append(out, pair{p[0], p[1], d})
	}
	slices.SortFunc(out, func(x, y pair) int {
		return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	return out
}

// pairUp adds the pairs of a list of hashes to found. The hash decides quickly; the grids then
// confirm that the brightness is similar, too.
func pairUp(list []*imageHash, found map[[2]int]float64) {
	for i, g := range list {
		for _, h := range list[i+1 : min(len(list), i+1+alikeBucket)] {
			if bits.OnesCount64(g.hash^h.hash) > alikeBits {
				continue
			}
			if d := g.distance(h); d <= alikeLevels {
				found[[2]int{g.record, h.record}] = d
			}
		}
	}
}

// contrast returns the difference between the brightest and the darkest cell.
func (g *imageHash) contrast() int { return int(slices.Max(g.grid[:])) - int(slices.Min(g.grid[:])) }

// distance returns the mean difference of two grids, 0 to 255.
func (g *imageHash) distance(h *imageHash) float64 {
	sum := 0.0
	for i := range g.grid {
		sum += math.Abs(float64(g.grid[i]) - float64(h.grid[i]))
	}
	return sum / float64(len(g.grid))
}
