package moments

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

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
		for _, layout := range []string{tensor.CHW, tensor.HWC, ""} {
			for _, pixels := range []int{1, 15, 16, piece, 2*piece + 17} {
				t.Run(fmt.Sprint(d, layout, pixels), func(t *testing.T) {
					shape, channels, run, channel := tensor.Shape{3 * pixels}, 1, 3*pixels, func(int) int { return 0 }
					switch layout {
					case tensor.CHW:
						shape, channels, run, channel = tensor.Shape{3, 1, pixels}, 3, pixels, func(i int) int { return i / pixels }
					case tensor.HWC:
						shape, channels, run, channel = tensor.Shape{1, pixels, 3}, 3, 1, func(i int) int { return i % 3 }
					}
					checkMeter(t, tensor.Spec{DType: d, Shape: shape}, make([]Moments, channels), run, rng, channel)
				})
			}
		}
	}
}

func checkMeter(t *testing.T, spec tensor.Spec, out []Moments, run int, rng *rand.Rand, channel func(i int) int) {
	t.Helper()
	record := make([]byte, spec.RecordBytes())
	var values [3][]float64
	for i := range len(record) / spec.DType.Size() {
		v := putNumber(spec.DType, record[i*spec.DType.Size():], float64(rng.IntN(128)))
		values[channel(i)] = append(values[channel(i)], v)
	}
	new(Meter).Measure(spec, run, record, out)
	for c, got := range out {
		mean, std := got.Mean, got.Std()
		if spec.DType == tensor.Uint8 {
			mean, std = got.OfBytes()
		}
		want := plain(values[c])
		if got.Min != want.Min || got.Max != want.Max || math.Abs(mean-want.Mean) > 1e-9 || math.Abs(std-math.Sqrt(want.M2)) > 1e-9 {
			t.Errorf("channel %d: %+v of mean %v and deviation %v, want %+v", c, got, mean, std, want)
		}
	}
}

// plain returns the least, greatest and mean of x, and the mean square around it.
func plain(x []float64) Moments {
	m := Moments{Min: x[0], Max: x[0]}
	for _, v := range x {
		m.Min, m.Max = min(m.Min, v), max(m.Max, v)
		m.Mean += v / float64(len(x))
	}
	for _, v := range x {
		m.M2 += (v - m.Mean) * (v - m.Mean) / float64(len(x))
	}
	return m
}

func TestMeterLeavesOutWhatIsNotFinite(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
		spec := tensor.Spec{DType: d, Shape: tensor.Shape{2 * piece}}
		record := make([]byte, spec.RecordBytes())
		for i := range 2 * piece {
			putNumber(d, record[i*d.Size():], []float64{2, 4, math.Inf(1), math.NaN()}[i%4])
		}
		out := make([]Moments, 1)
		new(Meter).Measure(spec, 2*piece, record, out)
		if got, want := out[0], (Moments{N: piece, Min: 2, Max: 4, Mean: 3, M2: piece, NonFinite: piece}); got != want {
			t.Errorf("%v: %+v, want %+v", d, got, want)
		}
	}
}

// TestMeterOfManyPieces measures channels of more pieces than are taken at a time, with and without
// numbers that are not finite: the results are bit for bit those of the pieces one by one.
func TestMeterOfManyPieces(t *testing.T) {
	const run = (together+3)*piece + 77
	spec := tensor.Spec{DType: tensor.Float32, Shape: tensor.Shape{2, 1, run}}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, bad := range [][]int{nil, {5}, {run + together*piece}, {2*run - 1, run - 1}} {
		record := make([]byte, spec.RecordBytes())
		for i := range 2 * run {
			putNumber(spec.DType, record[4*i:], rng.NormFloat64()-0.5)
		}
		for k, i := range bad {
			putNumber(spec.DType, record[4*i:], []float64{math.NaN(), math.Inf(-1)}[k])
		}
		m, got, want := new(Meter), make([]Moments, 2), make([]Moments, 2)
		m.Measure(spec, run, record, got)
		numbers := tensor.As[float32](tensor.Of(spec, 1, record))
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

// TestMeasureEach measures records at once and one by one, with and without numbers that are not finite: what is
// merged is the same, bit for bit.
func TestMeasureEach(t *testing.T) {
	const records = 100
	rng := rand.New(rand.NewPCG(5, 6))
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Uint8, tensor.Float16} {
		for _, n := range []int{1, 2, 7, 10, short - 1, short, short + 1, 50} {
			for _, bad := range [][]float64{nil, {math.NaN()}, {math.Inf(1), math.NaN(), math.Inf(-1)}} {
				spec := tensor.Spec{DType: d, Shape: tensor.Shape{n}}
				b := make([]byte, records*spec.RecordBytes())
				for i := range records * n {
					v := float64(float32(rng.NormFloat64() * 3))
					if i%5 == 0 {
						v = math.Copysign(0, v)
					}
					if len(bad) > 0 && rng.IntN(3*n) == 0 && d.IsFloat() {
						v = bad[rng.IntN(len(bad))]
					}
					putNumber(d, b[i*d.Size():], v)
				}
				each := make([]Moments, records)
				m := new(Meter)
				m.MeasureEach(spec, n, b, each)
				var got, want Moments
				for i := range records {
					one := make([]Moments, 1)
					m.Measure(spec, n, b[i*spec.RecordBytes():][:spec.RecordBytes()], one)
					want.Merge(one[0])
					got.Merge(each[i])
				}
				if fmt.Sprint(got) != fmt.Sprint(want) || math.Float64bits(got.M2) != math.Float64bits(want.M2) || math.Float64bits(got.Mean) != math.Float64bits(want.Mean) {
					t.Errorf("%v, %d numbers, %v among them: %+v, want %+v", d, n, bad, got, want)
				}
			}
		}
	}
}

func BenchmarkMeasureEach(b *testing.B) {
	const records = 1024
	for _, n := range []int{2, 10, 16, 50} {
		spec := tensor.Spec{DType: tensor.Float32, Shape: tensor.Shape{n}}
		values := make([]byte, records*spec.RecordBytes())
		for i := range records * n {
			putNumber(spec.DType, values[4*i:], float64(i%97))
		}
		out := make([]Moments, records)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := new(Meter)
			b.SetBytes(int64(len(values)))
			for b.Loop() {
				m.MeasureEach(spec, n, values, out)
			}
		})
		b.Run(fmt.Sprint(n, "/Measure"), func(b *testing.B) {
			m := new(Meter)
			b.SetBytes(int64(len(values)))
			for b.Loop() {
				for i := range out {
					m.Measure(spec, n, values[i*4*n:][:4*n], out[i:i+1])
				}
			}
		})
	}
}
