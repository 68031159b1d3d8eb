package feed

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/expr"
)

// expressionOf returns an expression, which is read from stdin for "-": the arguments of a program are limited in size.
func expressionOf(where string, stdin io.Reader) (string, error) {
	if where != "-" {
		return where, nil
	}
	text, err := io.ReadAll(stdin)
	return string(text), err
}

// find writes the records of a dataset for which an expression holds, one bit each: record i is bit i%8 of byte i/8.
func find(ctx context.Context, cache *datasetarg.Cache, path, text string, w io.Writer) (err error) {
	where, err := expr.Parse(text)
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

// matches writes which records of two datasets belong together, as numbers of 64 bits: how many follow of each kind,
// and these, the matches of the view's records, and the records of each side without one.
func matches(ctx context.Context, cache *datasetarg.Cache, paths []string, text string, w io.Writer) (err error) {
	var j combine.Join
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return fmt.Errorf("--join: %w", err)
	}
	left, err := cache.Any(ctx, paths[0], datasetarg.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, left.Close()) }()
	right, err := cache.Any(ctx, paths[1], datasetarg.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, right.Close()) }()
	_, found, err := combine.NewJoin(ctx, left.Source, right.Source, j)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	for _, list := range [][]int{found.Of, found.Left, found.Right} {
		if err := writeNumbers(out, len(list)); err != nil {
			return err
		}
	}
	return errors.Join(writeNumbers(out, found.Of...), writeNumbers(out, found.Left...), writeNumbers(out, found.Right...),
		out.Flush())
}

func writeNumbers(w io.Writer, numbers ...int) error {
	var b [8]byte
	for _, n := range numbers {
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		if _, err := w.Write(b[:]); err != nil {
			return err
		}
	}
	return nil
}
