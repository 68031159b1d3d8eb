package measure

import (
	"math/rand/v2"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
)

// Dataset makes a flat dataset of one field, in one file of n records. value returns record i, in dst or in memory of
// its own.
func Dataset(path string, field store.Field, n int, value func(i int, dst []byte) []byte) error {
	schema := store.Schema{Fields: []store.Field{field}}
	w, err := flat.Create(path, schema, flat.Options{ShardBytes: 1 << 40})
	if err != nil {
		return err
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range n {
		r.Values[0] = value(i, r.Values[0])
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}

// Noise returns records of random bytes, for Dataset: the same each time.
func Noise() func(i int, dst []byte) []byte {
	rng := rand.NewChaCha8([32]byte{})
	return func(_ int, dst []byte) []byte {
		_, _ = rng.Read(dst) // it never fails
		return dst
	}
}
