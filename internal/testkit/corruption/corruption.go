// Package corruption tests corrupt datasets of all formats: any corruption is
// found by opening the dataset or by Verify, or it does no harm.
package corruption

import (
	"bytes"
	"fmt"
	"iter"
	"reflect"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

// Content is all that a reader sees of a dataset. reflect.DeepEqual compares two.
type Content struct {
	Schema  store.Schema
	Bytes   [][]byte  // all records, or rows, of each field
	Offsets [][]int64 // of the records of each field, in rows; zeros where records have one length
}

// ContentOf reads a dataset.
func ContentOf(path string) (c Content, err error) {
	ds, err := mmapds.Open(path)
	if err != nil {
		return c, err
	}
	defer ds.Close()
	c.Schema = ds.Schema()
	for _, f := range ds.Specs() {
		v, offsets, err := all(ds, f)
		if err != nil {
			return c, err
		}
		c.Bytes, c.Offsets = append(c.Bytes, bytes.Clone(v.Bytes())), append(c.Offsets, offsets)
	}
	return c, nil
}

// all returns all records of a field, and the offsets.
func all(ds *mmapds.Dataset, f tensor.Spec) (v tensor.View, offsets []int64, err error) {
	offsets = make([]int64, ds.Len()+1)
	if f.Ragged {
		v, err = ds.SliceRagged(f.Name, 0, ds.Len(), offsets)
	} else {
		v, err = ds.Slice(f.Name, 0, ds.Len())
	}
	return v, offsets, err
}

// Done yields changes of the bytes of a file, each with the result: at every step-th byte a bit is
// flipped, and, where the place is a multiple of cuts, the file ends there.
func Done(good []byte, step, cuts int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for at := 0; at < len(good); at += step {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			if !yield(fmt.Sprintf("bit %d of byte %#x", at%8, at), bad) {
				return
			}
			if at%cuts == 0 && !yield(fmt.Sprintf("cut to %d bytes", at), good[:at]) {
				return
			}
		}
	}
}

// Trials judge corrupt versions of one dataset.
type Trials struct {
	// Unchecked counts it as found where Verify says that it could not check everything, as
	// it does of a file that has lost its manifest.
	Unchecked bool

	want   Content
	counts map[verdict]int
}

// NewTrials takes in the dataset at a path while it is good.
func NewTrials(t *testing.T, path string) *Trials {
	t.Helper()
	want, err := ContentOf(path)
	require.NoError(t, err)
	return &Trials{want: want, counts: make(map[verdict]int)}
}

// verdict is the outcome for a dataset.
type verdict string

const (
	opening  verdict = "open"   // refuses it
	verified verdict = "verify" // finds it
	harmless verdict = "harmless"
	missed   verdict = "missed"
)

// Judge fails the test where neither opening nor Verify finds the corruption of a dataset that
// is not what it was. done describes the corruption in the message.
func (x *Trials) Judge(t *testing.T, path, done string) {
	t.Helper()
	v, err := x.judge(t, path)
	if x.counts[v]++; v == missed {
		t.Errorf("%s: neither opening nor Verify found it (%v)", done, err)
	}
}

func (x *Trials) judge(t *testing.T, path string) (verdict, error) {
	t.Helper()
	d, err := store.Open(path, store.OpenOptions{})
	if err != nil {
		return opening, nil
	}
	v, err := verify.Dataset(t.Context(), d, verify.Options{})
	if err != nil {
		t.Fatalf("Verify could not go on: %v", err)
	}
	got, err := ContentOf(path) // must not fault, whatever Verify says
	switch {
	case v.Corruptions > 0 || x.Unchecked && len(v.Unchecked) > 0:
		return verified, nil
	case err != nil || !reflect.DeepEqual(got, x.want):
		return missed, err
	}
	return harmless, nil
}

// End logs the verdicts, and fails the test where there were none that opening found, or none
// that Verify did.
func (x *Trials) End(t *testing.T) {
	t.Helper()
	t.Logf("%v", x.counts)
	if x.counts[opening] == 0 || x.counts[verified] == 0 {
		t.Errorf("not all kinds of corruption were tried: %v", x.counts)
	}
}
