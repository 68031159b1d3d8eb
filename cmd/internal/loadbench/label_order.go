package loadbench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
)

// looked is the number of batches that labelOrder looks at.
const looked = 64

// labelOrder says that records are stored in the order of their labels, so that neighbors have
// fewer classes than random records; "" if this is not so or no field has classes. In that case,
// settings that keep neighbors together would train on batches of few classes, so they are not
// recommended however fast they are.
func labelOrder(ctx context.Context, src loader.Source, batch int) (string, error) {
	described, ok := src.(interface{ Schema() store.Schema })
	if !ok || batch < 2 || src.Len() < 2*batch {
		return "", nil
	}
	if err := src.Retain(); err != nil {
		return "", err
	}
	defer src.Release()
	for _, f := range described.Schema().Fields {
		if f.Ragged || len(f.Shape) > 0 || f.DType.IsFloat() || f.Classes == nil && !column.LabelName(f.Name) {
			continue
		}
		together, anyhow, err := classesOfBatches(ctx, src, f, batch)
		if err != nil {
			return "", err
		}
		if together < 0.75*anyhow {
			return fmt.Sprintf("records are in the order of %s: %d neighbors have %.1f classes, and %d random records %.1f. "+
				"So settings that keep neighbors together, Block and Sequential, are not recommended, however fast; %s stores "+
				"records in random order",
				f.Name, batch, together, batch, anyhow, shell.Penstock("preprocess --shuffle SEED")), nil
		}
	}
	return "", nil
}

// classesOfBatches returns the average number of classes in batches of neighbors, and in batches of
// random records.
func classesOfBatches(ctx context.Context, src loader.Source, f store.Field, batch int) (together, anyhow float64,
	err error) {
	n, r := src.Len(), rand.New(rand.NewPCG(1, 2))
	records, values := make([]int, batch), make([]byte, batch*f.RecordBytes())
	count := func() (float64, error) {
		if err := src.Gather(ctx, f.Name, records, values); err != nil {
			return 0, err
		}
		seen := make(map[uint64]bool)
		for i := range batch {
			var word [8]byte
			copy(word[:], values[i*f.RecordBytes():(i+1)*f.RecordBytes()])
			seen[binary.LittleEndian.Uint64(word[:])] = true
		}
		return float64(len(seen)) / looked, nil
	}
	for k := range looked {
		first := int(int64(n-batch) * int64(k) / (looked - 1))
		for i := range records {
			records[i] = first + i
		}
		c, err := count()
		if err != nil {
			return 0, 0, err
		}
		together += c
		for i := range records {
			records[i] = r.IntN(n)
		}
		if c, err = count(); err != nil {
			return 0, 0, err
		}
		anyhow += c
	}
	return together, anyhow, nil
}
