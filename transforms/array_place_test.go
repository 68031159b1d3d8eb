package transforms_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// TestArrayMovesTogether draws pipelines of moves with steps between them, and does the same with one transform at a time.
func TestArrayMovesTogether(t *testing.T) {
	types := []tensor.DType{tensor.Uint8, tensor.Int16, tensor.Float32, tensor.Int64}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		side := 1 + r.IntN(5)
		in := tensor.Spec{Name: "x", DType: types[r.IntN(len(types))], Shape: tensor.Shape{1 + r.IntN(4), side, side}}
		var steps []string
		for range 1 + r.IntN(5) {
			steps = append(steps, []string{
				`{"op": "RandomFlip", "axes": [0, -1]}`,
				`{"op": "RandomRot90", "axes": [1, 2]}`,
				`{"op": "Clip", "max": 40}`,
				fmt.Sprintf(`{"op": "CenterSpatialCrop", "size": [%d, %[1]d]}`, 1+r.IntN(side)),
			}[r.IntN(4)])
			if strings.Contains(steps[len(steps)-1], "Crop") {
				side = 1 // a crop is at most as large as the last one
			}
		}
		src := make([]byte, in.RecordBytes()+1)[1:] // not aligned
		for i := range in.Shape.Elems() {
			src[i*in.DType.Size()] = byte(i % 128)
		}
		if in.DType == tensor.Float32 {
			for i := range in.Shape.Elems() {
				binary.LittleEndian.PutUint32(src[4*i:], math.Float32bits(float32(i)))
			}
		}
		rnd := transforms.NewRand(seed, 1, 0)
		want, got := slices.Clone(src), apply(t, steps, in, src, rnd)
		// Each move has a random stream by its number among the moves of a pipeline, so a single one needs
		// those before it: they are present with p = 0.
		spec := in
		for i, step := range steps {
			var alone []string
			for _, before := range steps[:i] {
				if strings.Contains(before, "Random") {
					alone = append(alone, strings.Replace(before, `"axes"`, `"p": 0, "axes"`, 1))
				}
			}
			want = apply(t, append(alone, step), spec, want, rnd)
			p, err := transforms.ParseArray([]byte("[" + step + "]"))
			require.NoError(t, err)
			if spec, err = p.Output(spec); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v of %v: %v, and one at a time %v", seed, steps, in.Shape, got, want)
		}
	}
}

func apply(t *testing.T, steps []string, in tensor.Spec, src []byte, rnd transforms.Rand) []byte {
	t.Helper()
	p, err := transforms.ParseArray([]byte("[" + strings.Join(steps, ",") + "]"))
	require.NoError(t, err)
	run, err := p.Runner(in)
	require.NoError(t, err)
	dst := make([]byte, run.OutputBytes(len(src)))
	require.NoError(t, run.DoRandom(dst, src, rnd))
	return dst
}

// TestArrayMovesAreExact moves integers that float64 does not have.
func TestArrayMovesAreExact(t *testing.T) {
	in := tensor.Spec{Name: "x", DType: tensor.Int64, Shape: tensor.Shape{2}}
	src := make([]byte, 16)
	binary.LittleEndian.PutUint64(src, 1<<53+1)
	got := apply(t, []string{`{"op": "RandomFlip", "axes": [0], "p": 1}`}, in, src, transforms.NewRand(1, 1, 1))
	if binary.LittleEndian.Uint64(got[8:]) != 1<<53+1 {
		t.Errorf("%d", binary.LittleEndian.Uint64(got[8:]))
	}
}

func BenchmarkArrayMoves(b *testing.B) {
	in := tensor.Spec{Name: "x", DType: tensor.Uint16, Shape: tensor.Shape{96, 96, 96}}
	p, err := transforms.ParseArray([]byte(`[{"op": "RandomFlip", "axes": [0, 1, 2]}, {"op": "RandomRot90", "axes": [1, 2], "p": 0.75}]`))
	require.NoError(b, err)
	run, err := p.Runner(in)
	require.NoError(b, err)
	src, dst := make([]byte, in.RecordBytes()), make([]byte, in.RecordBytes())
	b.SetBytes(int64(len(src)))
	for i := 0; b.Loop(); i++ {
		require.NoError(b, run.DoRandom(dst, src, transforms.NewRand(1, 1, uint64(i))))
	}
}
