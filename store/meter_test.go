package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"
)

// putNumber writes v, which d can hold, and returns it as stored.
func putNumber(d tensor.DType, to []byte, v float64) float64 {
	switch d {
	case tensor.Float16:
		h := tensor.HalfOf(float32(v))
		binary.LittleEndian.PutUint16(to, uint16(h))
		return float64(h.Float32())
	case tensor.BFloat16:
		h := tensor.BrainOf(float32(v))
		binary.LittleEndian.PutUint16(to, uint16(h))
		return float64(h.Float32())
	case tensor.Float32:
		binary.LittleEndian.PutUint32(to, math.Float32bits(float32(v)))
		return float64(float32(v))
	case tensor.Float64:
		binary.LittleEndian.PutUint64(to, math.Float64bits(v))
		return v
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(int64(v)))
	copy(to[:d.Size()], b[:])
	return math.Trunc(v)
}

// TestMeterOfEveryType measures fields of more than one piece, whole and not, with their
// channels in turn and one after the other, against the definition.
func TestMeterOfEveryType(t *testing.T) {
	types := []tensor.DType{
		tensor.Uint8, tensor.Int8, tensor.Uint16, tensor.Int16, tensor.Uint32, tensor.Int32, tensor.Uint64, tensor.Int64,
		tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range types {
		for _, layout := range []string{CHW, HWC, ""} {
			for _, pixels := range []int{1, 15, 16, piece, 2*piece + 17} {
				t.Run(fmt.Sprint(d, layout, pixels), func(t *testing.T) {
					f := NewField("x", d, 3*pixels)
					channel := func(int) int { return 0 }
					switch layout {
					case CHW:
						f = NewField("x", d, 3, 1, pixels)
						f.Layout, channel = CHW, func(i int) int { return i / pixels }
					case HWC:
						f = NewField("x", d, 1, pixels, 3)
						f.Layout, channel = HWC, func(i int) int { return i % 3 }
					}
					checkMeter(t, f, rng, channel)
				})
			}
		}
	}
}

func checkMeter(t *testing.T, f Field, rng *rand.Rand, channel func(i int) int) {
	t.Helper()
	record := make([]byte, f.RecordBytes())
	var values [3][]float64
	for i := range len(record) / f.DType.Size() {
		v := putNumber(f.DType, record[i*f.DType.Size():], float64(rng.IntN(128)))
		values[channel(i)] = append(values[channel(i)], v)
	}
	n, _ := f.Channels()
	out := make([]moments.Moments, n)
	new(meter).measure(f, record, out)
	for c := range out {
		compareMoments(t, fmt.Sprint("channel ", c), momentsOf(out[c], f.DType), values[c])
	}
}

func TestMeterLeavesOutWhatIsNotFinite(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
		f := NewField("x", d, 2*piece)
		record := make([]byte, f.RecordBytes())
		for i := range 2 * piece {
			putNumber(d, record[i*d.Size():], []float64{2, 4, math.Inf(1), math.NaN()}[i%4])
		}
		out := make([]moments.Moments, 1)
		new(meter).measure(f, record, out)
		if got, want := momentsOf(out[0], tensor.Float64), (Moments{Min: 2, Max: 4, Mean: 3, Std: 1, NonFinite: piece}); got != want {
			t.Errorf("%v: %+v, want %+v", d, got, want)
		}
	}
}

// TestMeterOfManyPieces measures channels of more pieces than are taken at a time, with and without
// numbers that are not finite: the figures are bit for bit those of the pieces one by one.
func TestMeterOfManyPieces(t *testing.T) {
	const run = (together+3)*piece + 77
	f := NewField("x", tensor.Float32, 2, 1, run)
	f.Layout = CHW
	rng := rand.New(rand.NewPCG(3, 4))
	for _, bad := range [][]int{nil, {5}, {run + together*piece}, {2*run - 1, run - 1}} {
		record := make([]byte, f.RecordBytes())
		for i := range 2 * run {
			putNumber(f.DType, record[4*i:], rng.NormFloat64()-0.5)
		}
		for k, i := range bad {
			putNumber(f.DType, record[4*i:], []float64{math.NaN(), math.Inf(-1)}[k])
		}
		m, got, want := new(meter), make([]moments.Moments, 2), make([]moments.Moments, 2)
		m.measure(f, record, got)
		numbers := tensor.As[float32](tensor.Of(f.Spec, 1, record))
		for c := range want {
			for x := range slices.Chunk(numbers[c*run:][:run], piece) {
				want[c].Merge(m.momentsOfFloats(x))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("not finite %v: %+v, want %+v", bad, got, want)
		}
	}
}
