package feed

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	expression "github.com/penstock/penstock/loader/filter"
)

// find writes the records of a dataset for which an expression holds, one bit each: record i is bit i%8 of byte i/8.
func find(ctx context.Context, cache *datasetarg.Cache, path, text string, w io.Writer) (err error) {
	where, err := expression.Parse(text)
	if err != nil {
		return err
	}
	ds, err := cache.Any(ctx, path, datasetarg.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	set, err := where.Find(ctx, ds.Source)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	var word [8]byte
	for i, bits := range set.Words() {
		binary.LittleEndian.PutUint64(word[:], bits)
		if _, err := out.Write(word[:min(8, (set.Len()-64*i+7)/8)]); err != nil {
			return err
		}
	}
	return out.Flush()
}
