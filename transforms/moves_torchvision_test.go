package transforms

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
)

var movesCases = flag.Int("moves", 100, "random pipelines that TestMovesAgainstTorchvision compares")

// movesScript applies the calls of each case to a mask, boxes and points, as torchvision does.
const movesScript = `
import json, sys, numpy as np, torch
from torchvision import tv_tensors as tv
from torchvision.transforms.v2 import functional as F, InterpolationMode as I, SanitizeBoundingBoxes
torch.set_num_threads(1)
for line in open(sys.argv[1]):
    c = json.loads(line)
    h, w = c["h"], c["w"]
    dtype = {1: torch.uint8, 2: torch.int32, 4: torch.int32, 8: torch.int64}[c["size"]]
    mask = tv.Mask(torch.tensor(c["mask"], dtype=dtype).reshape(h, w))
    boxes = tv.BoundingBoxes(torch.tensor(c["boxes"]).reshape(-1, 4), format="XYXY", canvas_size=(h, w))
    points = tv.KeyPoints(torch.tensor(c["points"]).reshape(-1, 2), canvas_size=(h, w))
    kept, seen = torch.ones(len(boxes), dtype=torch.bool), torch.ones(len(points), dtype=torch.bool)
    near = I.NEAREST if c["nearest"] else I.NEAREST_EXACT
    for call in c["calls"]:
        name, args = call["name"], dict(call["args"])
        do = getattr(F, name, None)
        def each(fill=None, **more):
            filled = {"fill": c["fill"]} if fill else {}
            return do(mask, **args, **more, **filled), do(boxes, **args), do(points, **args)
        if name == "resize":
            if args["size"] != list(mask.shape[-2:]):
                mask, boxes, points = do(mask, interpolation=near, **args), do(boxes, **args), do(points, **args)
        elif name in ("horizontal_flip", "vertical_flip", "crop", "clamp_bounding_boxes", "clamp_keypoints"):
            if name == "clamp_bounding_boxes":
                boxes = do(boxes)
                continue
            if name == "clamp_keypoints":
                points = do(points)
                continue
            mask, boxes, points = each()
        elif name == "pad":
            if args["padding_mode"] == "constant":
                mask, boxes, points = each(fill=True)
            else:  # torchvision refuses boxes
                mode = args.pop("padding_mode")
                mask, boxes, points = do(mask, padding_mode=mode, **args), do(boxes, **args), do(points, **args)
        elif name == "elastic":
            field = torch.tensor(args.pop("field"), dtype=torch.float32).reshape(2, *mask.shape[-2:]).permute(1, 2, 0)[None]
            mask = do(mask, field, fill=c["fill"])
            boxes, points = do(boxes, field), do(points, field)
        elif name == "sanitize":
            if args["min_size"] < 1:  # of FixedSizeCrop in torchvision's references
                kept &= (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
                continue
            _, valid = F.sanitize_bounding_boxes(boxes, **args)
            kept &= valid
        elif name == "sanitize_keypoints":
            _, valid = F.sanitize_keypoints(points)
            seen &= valid
        else:
            mask, boxes, points = each(fill=True)
    print(json.dumps({"mask": mask.flatten().tolist(), "shape": list(mask.shape[-2:]), "boxes": boxes.flatten().tolist(), "points": points.flatten().tolist(), "keep": kept.tolist(), "seen": seen.tolist()}))
`

type torchCall struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
}

type torchCase struct {
	W       int         `json:"w"`
	H       int         `json:"h"`
	Size    int         `json:"size"`
	Mask    []uint64    `json:"mask"`
	Boxes   []float32   `json:"boxes"`
	Points  []float32   `json:"points"`
	Fill    int         `json:"fill"`
	Nearest bool        `json:"nearest"`
	Calls   []torchCall `json:"calls"`

	ts    []Transform
	moves Moves
	exact bool // boxes and points of torchvision are those of the pixels
}

// callsOf returns torchvision's calls for what a pipeline did.
func callsOf(m *Moves, warps []torchCall) []torchCall {
	calls := []torchCall{}
	add := func(name string, args map[string]any) {
		calls = append(calls, torchCall{name, args})
	}
	for i := range m.list {
		d := &m.list[i]
		switch d.kind {
		case moveResize:
			add("resize", map[string]any{"size": []int{d.h, d.w}})
		case moveCrop, moveIoUCrop:
			add("crop", map[string]any{"top": d.at[1], "left": d.at[0], "height": d.h, "width": d.w})
		case moveFlipH:
			add("horizontal_flip", map[string]any{})
		case moveFlipV:
			add("vertical_flip", map[string]any{})
		case movePad:
			add("pad", map[string]any{"padding": d.at[:], "padding_mode": d.mode.String()})
		case moveClamp:
			add("clamp_bounding_boxes", map[string]any{})
		case moveClampPoints:
			add("clamp_keypoints", map[string]any{})
		case moveSanitizePoints:
			add("sanitize_keypoints", map[string]any{})
		case moveSanitize:
			add("sanitize", map[string]any{"min_size": d.a[0], "min_area": d.a[1]})
		case movePerspective: // of a least squares solution some last bits are others
			add("perspective", map[string]any{"startpoints": nil, "endpoints": nil, "coefficients": d.a[:]})
		case moveElastic:
			var k MaskMover
			k.displacement(d)
			add("elastic", map[string]any{"field": k.field[:2*d.w*d.h]})
		default:
			calls, warps = append(calls, warps[0]), warps[1:]
		}
	}
	return calls
}

// randomMoves returns a random operation, and torchvision's call for it if it is a warp.
func randomMoves(r *rand.Rand, w, h int) (Transform, []torchCall) {
	side := func() int { return 5 + r.IntN(60) }
	near := func() float64 { return math.Round((r.Float64()*2-1)*1e4) / 100 }
	switch r.IntN(23) {
	case 0:
		return Resize{Size: []int{side(), side()}}, nil
	case 1:
		return Resize{Size: []int{side()}}, nil
	case 2:
		return Resize{Size: []int{side(), side()}, Fit: []string{"pad", "cover"}[r.IntN(2)]}, nil
	case 3:
		return CenterCrop{Size: []int{side(), side()}}, nil
	case 4:
		return RandomResizedCrop{Size: []int{side(), side()}}, nil
	case 5:
		return RandomCrop{Size: []int{side()}, PadIfNeeded: true}, nil
	case 6:
		return HorizontalFlip{}, nil
	case 7:
		return RandomVerticalFlip{}, nil
	case 8:
		most := []int{20, 5}[r.IntN(2)]
		mode := PadMode(0)
		if most == 5 && min(w, h) > 5 { // torchvision repeats no image several times
			mode = PadMode(r.IntN(4))
		}
		return Pad{Padding: []int{r.IntN(most), r.IntN(most), r.IntN(most), r.IntN(most)}, Mode: mode}, nil
	case 9:
		return RandomZoomOut{Range: []float64{1, 2}}, nil
	case 10:
		return ScaleJitter{Target: []int{side(), side()}, Range: []float64{.5, 1.5}}, nil
	case 11:
		return RandomShortestSize{MinSize: []int{side(), side()}, MaxSize: 100}, nil
	case 12:
		return RandomResize{MinSize: 10, MaxSize: 80}, nil
	case 13, 14:
		angle := near()
		if r.IntN(4) == 0 {
			angle = float64(90 * (r.IntN(9) - 4))
		}
		if c := []float64{float64(r.IntN(40)), float64(r.IntN(40))}; r.IntN(3) == 0 && math.Mod(angle, 90) != 0 {
			return RandomRotation{Degrees: []float64{angle, angle}, Center: c}, []torchCall{{"rotate", map[string]any{"angle": angle, "center": c}}}
		}
		return turned(angle), []torchCall{{"rotate", map[string]any{"angle": angle}}}
	case 15, 16:
		f := fixedWarp{near(), float64(r.IntN(20) - 10), float64(r.IntN(20) - 10), .5 + r.Float64(), near() / 4, nil}
		return f, []torchCall{{"affine", map[string]any{"angle": f.angle, "translate": []float64{f.tx, f.ty}, "scale": f.scale, "shear": []float64{f.shear, 0}}}}
	case 17:
		in := func(n int) float64 { return float64(r.IntN(n/4 + 1)) }
		right, below := float64(w-1), float64(h-1)
		to := [][2]float64{{in(w), in(h)}, {right - in(w), in(h)}, {right - in(w), below - in(h)}, {in(w), below - in(h)}}
		return fixedWarp{corners: to}, nil
	case 18:
		return ElasticTransform{Alpha: []float64{20}, Sigma: []float64{1}}, nil
	case 19:
		return ClampBoundingBoxes{}, nil
	case 20:
		return FixedSizeCrop{Size: []int{side(), side()}}, nil
	case 21:
		return []Transform{ClampKeyPoints{}, SanitizeKeyPoints{}}[r.IntN(2)], nil
	}
	return SanitizeBoundingBoxes{MinSize: new(1 + float64(r.IntN(5))), MinArea: new(1 + float64(r.IntN(20)))}, nil
}

// newTorchCase returns a random pipeline for a random image with a mask, boxes and points.
func newTorchCase(t *testing.T, r *rand.Rand, n int) *torchCase {
	t.Helper()
	c := &torchCase{W: 8 + r.IntN(60), H: 8 + r.IntN(60), Size: 1 << r.IntN(4), Fill: r.IntN(2) * 255, Nearest: r.IntN(3) == 0, exact: true,
		Boxes: []float32{}, Points: []float32{}, Calls: []torchCall{}}
	for range c.W * c.H {
		c.Mask = append(c.Mask, r.Uint64()%[]uint64{0: 256, 1: 65536, 3: 1 << 24, 7: 1 << 24}[c.Size-1])
	}
	for range r.IntN(6) {
		x, y := r.Float32()*float32(c.W), r.Float32()*float32(c.H)
		c.Boxes = append(c.Boxes, x, y, x+r.Float32()*(float32(c.W)-x), y+r.Float32()*(float32(c.H)-y))
	}
	for range 2 * r.IntN(6) {
		c.Points = append(c.Points, r.Float32()*float32(min(c.W, c.H)))
	}
	options := LabelOptions{MaskFill: new(c.Fill), Keypoints: "pixels"}
	if c.Nearest {
		options.MaskResize = "nearest"
	}
	c.ts = []Transform{options}
	c.moves = Moves{w: c.W, h: c.H}
	var warps []torchCall
	w, h, rnd := c.W, c.H, NewRand(uint64(n), 1, 2)
	for range 1 + r.IntN(4) {
		op, calls := randomMoves(r, w, h)
		m, err := mustCompose(t, append(c.ts[:len(c.ts):len(c.ts)], op)...).Runner().Moves(Info{W: c.W, H: c.H, C: 3}, rnd, nil)
		if err != nil {
			continue // too small, or too large
		}
		c.ts, warps = append(c.ts, op), append(warps, calls...)
		w, h = m.Size()
		c.moves = Moves{w: c.W, h: c.H, list: append([]move(nil), m.list...), options: m.options}
		if _, ok := op.(ElasticTransform); ok {
			c.exact = false // torchvision rounds places to whole pixels: see TestElasticPlaces
		}
	}
	c.Calls = callsOf(&c.moves, warps)
	return c
}

// Masks, boxes and points go where torchvision brings them, by random pipelines of all operations.
func TestMovesAgainstTorchvision(t *testing.T) {
	pythontest.Need(t, "import torchvision.transforms.v2")
	r := rand.New(rand.NewPCG(7, uint64(*movesCases)))
	var lines bytes.Buffer
	var cases []*torchCase
	for n := range *movesCases {
		c := newTorchCase(t, r, n)
		text, err := json.Marshal(c)
		require.NoError(t, err)
		cases = append(cases, c)
		lines.Write(append(text, '\n'))
	}
	file := filepath.Join(t.TempDir(), "cases")
	require.NoError(t, os.WriteFile(file, lines.Bytes(), 0o666))
	out := json.NewDecoder(bytes.NewReader(pythontest.Run(t, "import torchvision.transforms.v2", "-c", movesScript, file)))
	far, wrong, atLimit := 0.0, 0, 0
	for n, c := range cases {
		var want struct {
			Mask          []uint64
			Shape         [2]int
			Boxes, Points []float32
			Keep, Seen    []bool
		}
		require.NoError(t, out.Decode(&want))
		name := fmt.Sprintf("case %d, %dx%d: %+v", n, c.W, c.H, c.ts[1:])
		at := 0
		mask := maskOf(c.W, c.H, c.Size, func(_, _ int) uint64 { at++; return c.Mask[at-1] })
		if w, h := c.moves.Size(); w != want.Shape[1] || h != want.Shape[0] {
			t.Errorf("%s: %dx%d, want %v", name, w, h, want.Shape)
			continue
		}
		different := 0
		for i, v := range maskAfter(t, &c.moves, mask, c.Size) {
			if v != want.Mask[i] {
				different++
			}
		}
		// In float32 a center between two pixels is of either: torch's product of matrices rounds some rows otherwise.
		warped := slices.ContainsFunc(c.moves.list, func(d move) bool { return d.kind == movePerspective })
		// Turned by 90 degrees, all centers of an image of odd and even sides are between two pixels, and torch turns such with
		// a grid of float32.
		tied := slices.ContainsFunc(c.ts, func(t Transform) bool {
			r, is := t.(RandomRotation)
			return is && math.Mod(r.Degrees[0], 90) == 0
		})
		if wrong += different; different > 0 && !(warped && different <= 2+len(want.Mask)/1000 || tied && different <= 2+len(want.Mask)/50) {
			t.Errorf("%s: %d of %d numbers of the mask differ", name, different, len(want.Mask))
		}
		keep, given := make([]bool, len(c.Boxes)/4), slices.Clone(c.Boxes)
		c.moves.Boxes(c.Boxes, keep)
		seen := make([]bool, len(c.Points)/2)
		c.moves.Points(c.Points, 2, seen)
		if !c.exact {
			continue
		}
		if !slices.Equal(seen, want.Seen) {
			t.Errorf("%s: of the points are left %v, want %v", name, seen, want.Seen)
		}
		if !slices.Equal(keep, want.Keep) {
			less, more := keptWithin(&c.moves, given, 1-1e-4), keptWithin(&c.moves, given, 1+1e-4)
			for i := range keep {
				if keep[i] == want.Keep[i] {
					continue
				}
				edge := want.Boxes[4*i:]
				over := edge[2] > float32(want.Shape[1]) || edge[3] > float32(want.Shape[0]) // by a rounding, which torchvision removes
				if atLimit++; less[i] == more[i] && !over {
					t.Errorf("%s: box %d is left: %v, want %v", name, i, keep[i], want.Keep[i])
				}
			}
		}
		for i, v := range append(c.Boxes, c.Points...) {
			d := math.Abs(float64(v - append(want.Boxes, want.Points...)[i]))
			// Far outside of the image, 1e-3 is less than some roundings of float32.
			if far = max(far, d); !(d <= max(1e-3, 4e-6*math.Abs(float64(v)))) {
				t.Errorf("%s: place %d is %v, want %v", name, i, v, append(want.Boxes, want.Points...)[i])
			}
		}
	}
	t.Logf("%d pipelines: %d numbers of masks differ, places are at most %.2g pixels apart, %d boxes have the size of the limit but for the last bit",
		len(cases), wrong, far, atLimit)
}

// keptWithin returns which boxes are left if the limits of size and area are others by a factor.
func keptWithin(m *Moves, boxes []float32, factor float64) []bool {
	other := Moves{w: m.w, h: m.h, list: slices.Clone(m.list), options: m.options}
	for i := range other.list {
		if d := &other.list[i]; d.kind == moveSanitize {
			d.a[0] *= factor
			d.a[1] *= factor
		}
	}
	keep := make([]bool, len(boxes)/4)
	other.Boxes(slices.Clone(boxes), keep)
	return keep
}
