package flat

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	build "github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// Records that come in blocks make the same files, byte for byte, as records that come one by one: of every type,
// with numbers that are not finite, with values of any length, in shards and splits that end within blocks.
func TestBlocksMakeTheSameFiles(t *testing.T) {
	s := testSchema()
	for d := tensor.Bool; d <= tensor.Float64; d++ {
		s.Fields = append(s.Fields, store.NewField("one_"+d.String(), d), store.NewField("pair_"+d.String(), d, 2))
	}
	s.Fields = append(s.Fields, store.NewRagged("any_text", tensor.Uint8), store.NewRagged("any_points", tensor.Float32, 2),
		store.NewRagged("any_labels", tensor.Int64), store.NewRagged("any_rgb", tensor.Uint8, 2, 2, 3))
	odd := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324}
	fill := func(r *store.Record, i int) {
		fillRecord(r, i)
		rng := rand.New(rand.NewPCG(uint64(i), 2))
		for k := 3; k < len(s.Fields); k++ {
			f := s.Fields[k]
			if f.Ragged {
				r.Values[k] = append(r.Values[k][:0], make([]byte, rng.IntN(3)*rng.IntN(60)*f.RecordBytes())...)
			}
			for v := r.Values[k]; len(v) > 0; v = v[f.DType.Size():] {
				x := rng.NormFloat64()
				if i%7 == 3 {
					x = odd[rng.IntN(len(odd))]
				}
				switch {
				case f.DType == tensor.Bool:
					v[0] = byte(rng.IntN(2))
				case f.DType == tensor.Float64:
					binary.LittleEndian.PutUint64(v, math.Float64bits(x))
				case f.DType == tensor.Float32:
					binary.LittleEndian.PutUint32(v, math.Float32bits(float32(x)))
				default:
					for b := range v[:f.DType.Size()] {
						v[b] = byte(rng.Uint32())
					}
				}
			}
		}
	}
	const records = 300
	split := func(i int) string { return []string{"train", "test"}[i/70%2] }
	opts := Options{ShardBytes: 100_000, Splits: []string{"train", "test"}}
	one, many := filepath.Join(t.TempDir(), "ds"), filepath.Join(t.TempDir(), "ds")
	write := func(dest string, add func(w store.Writer) error) {
		t.Helper()
		w, err := Create(dest, s, opts)
		require.NoError(t, err)
		defer w.Close()
		require.NoError(t, add(w))
		if _, err := w.Commit(store.Info{}); err != nil {
			t.Fatal(err)
		}
	}
	r := store.NewRecord(s)
	write(one, func(w store.Writer) error {
		for i := range records {
			fill(r, i)
			r.Split = split(i)
			if err := w.Append(r); err != nil {
				return err
			}
		}
		return nil
	})
	write(many, func(w store.Writer) error {
		rng := rand.New(rand.NewPCG(1, 1))
		b := digest.NewBlock(s.Specs())
		for i := 0; i < records; {
			n := min(1+rng.IntN(50), 70-i%70, records-i)
			b.N, b.Split = n, split(i)
			for k := range b.Values {
				b.Values[k], b.Ends[k] = b.Values[k][:0], b.Ends[k][:0]
			}
			for end := i + n; i < end; i++ {
				fill(r, i)
				for k, v := range r.Values {
					b.Values[k] = append(b.Values[k], v...)
					if s.Fields[k].Ragged {
						b.Ends[k] = append(b.Ends[k], len(b.Values[k]))
					}
				}
			}
			if i%2 == 0 {
				b.Summarize()
			}
			if err := build.AppendBlock(w, b); err != nil {
				return err
			}
		}
		return nil
	})
	names, err := os.ReadDir(one)
	require.NoError(t, err)
	others, err := os.ReadDir(many)
	if err != nil || len(others) != len(names) || len(names) < 100 {
		t.Fatalf("%d files, and %d by blocks: %v", len(names), len(others), err)
	}
	for _, e := range names {
		a, err := os.ReadFile(filepath.Join(one, e.Name()))
		require.NoError(t, err)
		if b, err := os.ReadFile(filepath.Join(many, e.Name())); err != nil || string(a) != string(b) {
			t.Errorf("%s differs: %v", e.Name(), err)
		}
	}
}
