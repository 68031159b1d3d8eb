package transforms

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// movesOf returns how a pipeline moves an image of w x h pixels.
func movesOf(t *testing.T, w, h int, ts ...Transform) *Moves {
	t.Helper()
	m, err := mustCompose(t, ts...).Runner().Moves(Info{W: w, H: h, C: 3}, NewRand(1, 2, 3), nil)
	require.NoError(t, err)
	return m
}

// near reports whether numbers are at most 1e-3 apart.
func near(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) <= 1e-3 })
}

// turned is RandomRotation by one angle, affineBy RandomAffine by one of each, but for the translation.
func turned(angle float64) Transform { return RandomRotation{Degrees: []float64{angle, angle}} }

// fixedWarp is a warp of given parameters.
type fixedWarp struct {
	angle, tx, ty, scale, shear float64
	corners                     [][2]float64 // a perspective instead, if there are any
}

func (t fixedWarp) Build(p *Plan) error {
	if t.corners != nil {
		return addPerspective(p, [4][2]float64(t.corners), 0, [3]byte{})
	}
	w, h := float64(p.info.W)/2, float64(p.info.H)/2
	return addCentered(p, warp(t.angle, t.tx, t.ty, t.scale, t.shear, 0, w, h), warp(t.angle, t.tx, t.ty, t.scale, t.shear, 0, 0, 0), 0, [3]byte{})
}

// Boxes and points go where torchvision 0.29 brings them on a canvas of 8 rows and 10 columns, or where the pixels go if it
// does not.
func TestMovesKnown(t *testing.T) {
	flipH, flipV := HorizontalFlip{}, VerticalFlip{}
	resize := Resize{Size: []int{5, 7}}
	for _, c := range []struct {
		name      string
		ts        []Transform
		box, want []float32
		points    []float32 // of two numbers
		moved     []float32
		w, h      int // 0 means 10 and 8
	}{
		{name: "resize", ts: []Transform{resize}, box: []float32{1, 1, 5, 5}, want: []float32{.7, .625, 3.5, 3.125}, points: []float32{9, 7}, moved: []float32{6.3, 4.375}},
		{name: "flip", ts: []Transform{flipH}, box: []float32{1, 2, 4, 6}, want: []float32{6, 2, 9, 6}, points: []float32{1, 2}, moved: []float32{9, 2}},
		{name: "flips", ts: []Transform{flipV, flipH}, box: []float32{1, 2, 4, 6}, want: []float32{6, 2, 9, 6}, points: []float32{1, 2}, moved: []float32{9, 6}},
		{name: "rotate 180", ts: []Transform{turned(180)}, box: []float32{1, 2, 4, 6}, want: []float32{6, 2, 9, 6}, points: []float32{1, 2}, moved: []float32{9, 6}},
		{name: "rotate 90, expanded", ts: []Transform{Rotate{Angle: 90}}, box: []float32{1, 2, 4, 6}, want: []float32{2, 6, 6, 9}, points: []float32{1.5, 2.5}, moved: []float32{2.5, 8.5}},
		{name: "rotate 90", ts: []Transform{turned(90)}, box: []float32{1, 2, 4, 6}, want: []float32{3, 5, 7, 8}},
		{name: "rotate 45", ts: []Transform{turned(45)}, box: []float32{4, 3, 6, 5}, want: []float32{3.5858, 2.5858, 6.4142, 5.4142}},
		{name: "rotate 30", ts: []Transform{turned(30)}, box: []float32{2, 2, 6, 5}, want: []float32{1.4019, 1.7679, 6.3660, 6.3660}},
		{name: "affine", ts: []Transform{fixedWarp{angle: 10, tx: 1, ty: 2, scale: 1.5, shear: 5}}, box: []float32{2, 2, 6, 5}, want: []float32{1.1787, 2.3097, 8.2566, 7.7149},
			points: []float32{2, 2}, moved: []float32{2.3478, 2.3097}},
		{name: "affine is rotate the other way", ts: []Transform{fixedWarp{angle: 10, scale: 1}, turned(10)}, box: []float32{5, 4, 5, 4}, want: []float32{5, 4, 5, 4}, points: []float32{2, 2}, moved: []float32{2, 2}},
		{name: "center crop with a border", ts: []Transform{CenterCrop{Size: []int{12, 13}}}, box: []float32{1, 2, 4, 6}, want: []float32{2, 4, 5, 8}},
		{name: "center crop", ts: []Transform{CenterCrop{Size: []int{5}}}, box: []float32{1, 2, 4, 6}, want: []float32{0, 0, 2, 4}},
		{name: "crop", ts: []Transform{Crop{Top: 2, Left: 2, Height: 4, Width: 4}}, box: []float32{1, 2, 4, 6}, want: []float32{0, 0, 2, 4}},
		{name: "crop of all", ts: []Transform{Crop{Height: 8, Width: 10}}, box: []float32{-1, 2, 12, 9}, want: []float32{0, 2, 10, 8}},
		{name: "center crop of all", ts: []Transform{CenterCrop{Size: []int{8, 10}}}, box: []float32{11, 2, 12, 6}, want: []float32{10, 2, 10, 6}},
		{name: "random crop of all", ts: []Transform{RandomCrop{Size: []int{8, 10}}}, box: []float32{-1, 2, 12, 9}, want: []float32{-1, 2, 12, 9}},
		{name: "crop away", ts: []Transform{Crop{Top: 0, Left: 7, Height: 3, Width: 3}}, box: []float32{1, 2, 4, 6}, want: []float32{0, 2, 0, 3}, points: []float32{1, 2}, moved: []float32{-6, 2}},
		{name: "resized crop", ts: []Transform{Crop{Top: 2, Left: 1, Height: 4, Width: 6}, Resize{Size: []int{8, 6}}}, box: []float32{1, 2, 4, 6}, want: []float32{0, 0, 3, 8}},
		{name: "pad", ts: []Transform{Pad{Padding: []int{1, 2, 3, 4}}}, box: []float32{1, 2, 4, 6}, want: []float32{2, 4, 5, 8}},
		{name: "perspective", ts: []Transform{fixedWarp{corners: [][2]float64{{1, 1}, {8, 0}, {9, 7}, {0, 6}}}}, box: []float32{2, 2, 6, 5}, want: []float32{1.7187, 1.8509, 5.1849, 4.4588},
			points: []float32{0, 0, 9, 7}, moved: []float32{1, 1, 9, 7}},
		{name: "perspective that shifts", ts: []Transform{fixedWarp{corners: [][2]float64{{2, 1}, {11, 1}, {11, 8}, {2, 8}}}}, box: []float32{2, 2, 6, 5}, want: []float32{4, 3, 8, 6}, points: []float32{1, 1}, moved: []float32{3, 2}},
		{name: "torchvision's keypoints", ts: []Transform{LabelOptions{Keypoints: "pixels"}, flipH, flipV}, points: []float32{1, 2}, moved: []float32{8, 5}},
	} {
		m := movesOf(t, 10, 8, c.ts...)
		b, p := slices.Clone(c.box), slices.Clone(c.points)
		m.Boxes(b, nil)
		m.Points(p, 2, nil)
		if !near(b, c.want) || !near(p, c.moved) {
			t.Errorf("%s: %v, want %v; %v, want %v", c.name, b, c.want, p, c.moved)
		}
	}
	if w, h := movesOf(t, 10, 8, Pad{Padding: []int{1, 2, 3, 4}}).Size(); w != 14 || h != 14 {
		t.Errorf("pad makes %dx%d", w, h)
	}
	if w, h := movesOf(t, 10, 8, Rotate{Angle: 90}).Size(); w != 8 || h != 10 {
		t.Errorf("rotate makes %dx%d", w, h)
	}
	hidden := []float32{0, 0, 0, 3, 3, 1}
	if movesOf(t, 10, 8, flipH).Points(hidden, 3, nil); !near(hidden, []float32{0, 0, 0, 7, 3, 1}) {
		t.Errorf("a point that is not labeled moves: %v", hidden)
	}
}

// SanitizeBoundingBoxes leaves the boxes that torchvision's leaves.
func TestSanitize(t *testing.T) {
	boxes := []float32{0, 0, 1, 1, 0, 0, .9, 5, 2, 2, 11, 4, -.1, 0, 3, 3, 0, 0, 10, 8, 3, 3, 2, 5}
	nan := float32(math.NaN())
	boxes = append(boxes, nan, 1, 2, 3, 1, 1, float32(math.Inf(1)), 3)
	keep := make([]bool, len(boxes)/4)
	movesOf(t, 10, 8, SanitizeBoundingBoxes{}).Boxes(boxes, keep)
	if want := []bool{true, false, false, false, true, false, false, false}; !slices.Equal(keep, want) {
		t.Errorf("%v, want %v", keep, want)
	}
	b := []float32{1, 2, 4, 6, 8, 1, 9, 2}
	movesOf(t, 10, 8, Crop{Left: 7, Width: 3, Height: 3}, SanitizeBoundingBoxes{}, HorizontalFlip{}).Boxes(b, keep[:2])
	if keep[0] || !keep[1] || !near(b[4:], []float32{1, 1, 2, 2}) {
		t.Errorf("%v %v", keep[:2], b)
	}
	require.NoError(t, CheckBoxes([]float32{0, 0, 1, 1}))
	for _, b := range [][]float32{{nan, 0, 1, 1}, {0, 0, 1, float32(math.Inf(1))}, {2, 0, 1, 1}, {0, 2, 1, 1}} {
		if err := CheckBoxes(append([]float32{0, 0, 1, 1}, b...)); err == nil || !strings.Contains(err.Error(), "box 1 is") {
			t.Errorf("%v: %v", b, err)
		}
	}
}

// maskOf returns a mask of w x h pixels whose numbers are 0, 1, ... and its elements' size.
func maskOf(w, h, size int, at func(x, y int) uint64) []byte {
	out := make([]byte, 0, w*h*size)
	for y := range h {
		for x := range w {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], at(x, y))
			out = append(out, b[:size]...)
		}
	}
	return out
}

func maskAfter(t *testing.T, m *Moves, mask []byte, size int) []uint64 {
	t.Helper()
	w, h := m.Size()
	out := make([]byte, w*h*size)
	var k MaskMover
	require.NoError(t, k.Move(out, mask, size, m))
	numbers := make([]uint64, w*h)
	for i := range numbers {
		var b [8]byte
		copy(b[:], out[i*size:(i+1)*size])
		numbers[i] = binary.LittleEndian.Uint64(b[:])
	}
	return numbers
}

// Masks are resized to the nearest pixel, with numbers of any size.
func TestMasksKnown(t *testing.T) {
	column := func(x, _ int) uint64 { return uint64(x) }
	for _, c := range []struct {
		width        int
		exact, other []uint64
	}{
		{4, []uint64{1, 3, 6, 8}, []uint64{0, 2, 5, 7}},
		{7, []uint64{0, 2, 3, 5, 6, 7, 9}, []uint64{0, 1, 2, 4, 5, 7, 8}},
	} {
		for _, size := range []int{1, 2, 4, 8} {
			mask := maskOf(10, 1, size, column)
			resize := Resize{Size: []int{1, c.width}}
			if got := maskAfter(t, movesOf(t, 10, 1, resize), mask, size); !slices.Equal(got, c.exact) {
				t.Errorf("to %d: %d, want %d", c.width, got, c.exact)
			}
			if got := maskAfter(t, movesOf(t, 10, 1, LabelOptions{MaskResize: "nearest"}, resize), mask, size); !slices.Equal(got, c.other) {
				t.Errorf("to %d as torchvision: %d, want %d", c.width, got, c.other)
			}
		}
	}
	large := func(x, y int) uint64 { return 16777217 + uint64(x) }
	if got := maskAfter(t, movesOf(t, 10, 8, turned(33), turned(-33)), maskOf(10, 8, 4, large), 4); got[3*10+4] != 16777221 {
		t.Errorf("%d", got[3*10+4])
	}
	turn := movesOf(t, 10, 8, LabelOptions{MaskFill: new(255)}, turned(45))
	if got := maskAfter(t, turn, maskOf(10, 8, 1, column), 1); got[0] != 255 || got[4*10+5] == 255 {
		t.Errorf("%d", got)
	}
	quarter := movesOf(t, 10, 8, Rotate{Angle: 90})
	if got := maskAfter(t, quarter, maskOf(10, 8, 1, func(x, y int) uint64 { return uint64(y*10 + x) }), 1); got[8*8+2] != 21 {
		t.Errorf("%d", got)
	}
}

// Wherever a pipeline brings pixels, the mask of a box lies in the box that it becomes, and masks are where the pixels are.
func TestMovesFollowPixels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ops := []func() Transform{
		func() Transform {
			return Resize{Size: []int{20 + r.IntN(60), 20 + r.IntN(60)}, Interpolation: "nearest"}
		},
		func() Transform { return HorizontalFlip{} },
		func() Transform { return VerticalFlip{} },
		func() Transform { return CenterCrop{Size: []int{20 + r.IntN(60), 20 + r.IntN(60)}} },
		func() Transform { return Pad{Padding: []int{r.IntN(9), r.IntN(9), r.IntN(9), r.IntN(9)}} },
		func() Transform { return RandomCrop{Size: []int{10 + r.IntN(40)}, PadIfNeeded: true} },
		func() Transform { return turned(float64(90 * r.IntN(4))) },
		func() Transform { return RandomZoomOut{Range: []float64{1, 2}} },
		func() Transform { return RandomResizedCrop{Size: []int{20 + r.IntN(50)}, Interpolation: "nearest"} },
		func() Transform {
			return ScaleJitter{Target: []int{60, 50}, Range: []float64{.5, 1.5}, Interpolation: "nearest"}
		},
		func() Transform {
			return RandomShortestSize{MinSize: []int{20, 30}, MaxSize: 50, Interpolation: "nearest"}
		},
	}
	for n := range 400 {
		w, h := 20+r.IntN(60), 20+r.IntN(60)
		var ts []Transform
		for range 1 + r.IntN(5) {
			ts = append(ts, ops[r.IntN(len(ops))]())
		}
		src := NewImage(w, h, 3)
		x, y := 2+r.IntN(w-10), 2+r.IntN(h-10)
		bw, bh := 1+r.IntN(w-x), 1+r.IntN(h-y)
		at := func(px, py int) uint64 {
			if px >= x && px < x+bw && py >= y && py < y+bh {
				return 200
			}
			return 0
		}
		mask := maskOf(w, h, 1, at)
		for i, v := range mask {
			src.Pix[3*i], src.Pix[3*i+1], src.Pix[3*i+2] = v, v, v
		}
		rnd := NewRand(uint64(n), 0, 0)
		run := mustCompose(t, ts...).Runner()
		m, err := run.Moves(Info{W: w, H: h, C: 3}, rnd, nil)
		if err != nil {
			t.Fatalf("%v: %v", ts, err)
		}
		ow, oh := m.Size()
		dst := make([]byte, ow*oh*3)
		if m, err = run.DoMoves(dst, src, rnd, nil); err != nil {
			t.Fatalf("%v: %v", ts, err)
		}
		b := []float32{float32(x), float32(y), float32(x + bw), float32(y + bh)}
		m.Boxes(b, nil)
		got := maskAfter(t, m, mask, 1)
		for i, v := range got {
			px, py := float32(i%ow), float32(i/ow)
			if v != 0 && (px+.5 < b[0]-2 || px+.5 > b[2]+2 || py+.5 < b[1]-2 || py+.5 > b[3]+2) {
				t.Fatalf("%v of %dx%d: pixel %v,%v of the mask is not in box %v", ts, w, h, px, py, b)
			}
		}
		wrong := 0
		for i, v := range got {
			if byte(v) != dst[3*i] {
				wrong++
			}
		}
		if wrong > len(got)/20 {
			t.Fatalf("%v of %dx%d: %d of %d numbers of the mask are not those of the image", ts, w, h, wrong, len(got))
		}
	}
}

// An operation that nobody knows moves no labels, unless it says that it only changes colors.
func TestUnknownMoves(t *testing.T) {
	for _, op := range []Transform{AugMix{}, unknownOp{}} {
		_, err := mustCompose(t, op).Runner().Moves(Info{W: 10, H: 8, C: 3}, NewRand(1, 2, 3), nil)
		if want := fmt.Sprintf("transform %s: masks, boxes and keypoints cannot follow", opName(op)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
	movesOf(t, 10, 8, unknownOp{recolors: true}, RandAugment{}, ColorJitter{Brightness: []float64{.5}})
}

type unknownOp struct{ recolors bool }

func (t unknownOp) Build(p *Plan) error {
	op := func(m, _ *Image, _ OpArgs) {}
	if t.recolors {
		return p.Recolor(op)
	}
	return p.Apply(op, p.info.W, p.info.H)
}

// A box of a rotated mask has its center where the numbers have theirs.
func TestRotatedCentroid(t *testing.T) {
	m := movesOf(t, 640, 480, Rotate{Angle: 30})
	mask := maskOf(640, 480, 1, func(x, y int) uint64 {
		if x >= 160 && x < 320 && y >= 120 && y < 240 {
			return 1
		}
		return 0
	})
	b := []float32{160, 120, 320, 240}
	m.Boxes(b, nil)
	w, _ := m.Size()
	sx, sy, n := 0.0, 0.0, 0.0
	for i, v := range maskAfter(t, m, mask, 1) {
		if v != 0 {
			sx, sy, n = sx+float64(i%w)+.5, sy+float64(i/w)+.5, n+1
		}
	}
	if dx, dy := sx/n-float64(b[0]+b[2])/2, sy/n-float64(b[1]+b[3])/2; math.Abs(dx) > .1 || math.Abs(dy) > .1 {
		t.Errorf("the mask is %.3f, %.3f from the center of its box", dx, dy)
	}
}

// RandomIoUCrop keeps a part that overlaps a box, and empties the others.
func TestRandomIoUCrop(t *testing.T) {
	run := mustCompose(t, RandomIoUCrop{Options: []float64{.5}}, SanitizeBoundingBoxes{}).Runner()
	in := []float32{10, 10, 60, 60, 80, 5, 95, 20}
	cropped := 0
	for n := range 200 {
		m, err := run.Moves(Info{W: 100, H: 80, C: 3}, NewRand(9, 0, uint64(n)), in)
		require.NoError(t, err)
		w, h := m.Size()
		b, keep := slices.Clone(in), make([]bool, 2)
		m.Boxes(b, keep)
		if w*h < 100*80 {
			cropped++
		}
		if !keep[0] && !keep[1] {
			t.Errorf("record %d: no box is left of %v in %dx%d", n, b, w, h)
		}
		for i := range keep {
			if keep[i] && (b[4*i+2] > float32(w) || b[4*i+3] > float32(h)) {
				t.Errorf("record %d: box %v leaves %dx%d", n, b[4*i:4*i+4], w, h)
			}
		}
	}
	if cropped < 100 {
		t.Errorf("%d of 200 images were cropped", cropped)
	}
	if m, err := run.Moves(Info{W: 100, H: 80, C: 3}, NewRand(9, 0, 1), []float32{}); err != nil || len(m.list) > 1 {
		t.Errorf("without boxes: %v, %v", m.list, err)
	}
}
