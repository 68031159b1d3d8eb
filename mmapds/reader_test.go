package mmapds

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// fakePager has the bytes of the files, with all bits of fields other than offsets turned, so that it shows who
// answered.
type fakePager struct {
	complete, inFiles, stays bool
	distrust                 error
	acquired, released       int
	need                     []Range
	fail                     error
}

func (p *fakePager) Complete() bool { return p.complete }
func (p *fakePager) Stays() bool    { return p.stays }

func (p *fakePager) Acquire(_ context.Context, need []Range, soon func() []Range) (Held, error) {
	if p.fail != nil {
		return nil, p.fail
	}
	p.acquired++
	p.need = append([]Range(nil), need...)
	if soon != nil {
		p.need = append(p.need, soon()...)
	}
	return p, nil
}

func (p *fakePager) Prefetch(need []Range) { p.need = need }

func (p *fakePager) ReadAt(path string, b []byte, off int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.ReadAt(b, off); err == nil && !bytes.Contains([]byte(path), []byte("offsets")) {
		for i := range b {
			b[i] = ^b[i]
		}
	}
	return err
}

func (p *fakePager) Distrust(err error) bool                  { return p.distrust != nil && errors.Is(err, p.distrust) }
func (p *fakePager) InFiles() bool                            { return p.inFiles }
func (p *fakePager) Again(_ context.Context, err error) error { return err }
func (p *fakePager) Release()                                 { p.released++ }

// tokens returns a flat dataset of 40 records: the record's number 5000 times, once, and as many times as it says.
func tokens(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ds")
	schema := store.Schema{Fields: []store.Field{
		store.NewField("x", tensor.Uint8, 5000), store.NewField("y", tensor.Uint8), store.NewRagged("tokens", tensor.Int32),
	}}
	w, err := flat.Create(path, schema, flat.Options{})
	require.NoError(t, err)
	datasettest.Write(t, w, schema, 40, store.Info{}, func(i int, r *store.Record) {
		copy(r.Values[0], bytes.Repeat([]byte{byte(i)}, 5000))
		r.Values[1][0] = byte(i)
		for range i {
			r.Values[2] = binary.LittleEndian.AppendUint32(r.Values[2], uint32(i))
		}
	})
	return path
}

// Every read has the same three answers: the files as they are, files that are held, and memory of the pager.
// Ranges that are acquired are released, and the bytes that are asked for are those of the records.
func TestThreeAnswers(t *testing.T) {
	path := tokens(t)
	for _, c := range []struct {
		name          string
		pager         fakePager
		held, viewed  bool // by the pager's memory; slices, which need bytes to stay
		reads, ragged int  // how often a read acquires
	}{
		{"complete", fakePager{complete: true}, false, false, 0, 0},
		{"held in files", fakePager{inFiles: true, stays: true}, false, false, 1, 2},
		{"held in files for a while", fakePager{inFiles: true}, false, true, 1, 2},
		{"held in memory", fakePager{}, true, true, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.pager
			d, err := Open(path, WithPager(&p), WithVerify(VerifyAlways))
			require.NoError(t, err)
			defer d.Close()
			value := func(i int, held bool) byte {
				if held {
					return ^byte(i)
				}
				return byte(i)
			}
			acquired := func(what string, want int) {
				t.Helper()
				if p.acquired != want || p.released != want {
					t.Errorf("%s: %d times acquired, %d times released; want %d", what, p.acquired, p.released, want)
				}
				p.acquired, p.released = 0, 0
			}
			dst := make([]byte, 3*5000)
			require.NoError(t, d.Gather(t.Context(), "x", []int{31, 2, 7}, dst))
			for k, i := range []int{31, 2, 7} {
				if got := dst[k*5000+4999]; got != value(i, c.held) {
					t.Errorf("Gather: record %d is %d", i, got)
				}
			}
			acquired("Gather", c.reads)
			if c.reads > 0 && (len(p.need) != 6 || p.need[1].Offset != 4096+2*5000 || p.need[1].Bytes != 5000) {
				t.Errorf("Gather asks for %v: want 3 records, and soon their labels", p.need)
			}
			v, err := d.Slice("x", 3, 5)
			if err != nil || v.Bytes()[5000] != value(4, c.viewed) {
				t.Errorf("Slice: %v, %v", v.Bytes()[:1], err)
			}
			acquired("Slice", c.reads)
			offsets := make([]int64, 3)
			rows, err := d.GatherRagged(t.Context(), "tokens", []int{3, 5}, offsets, nil)
			if err != nil || offsets[2] != 8 || rows[4*7] != value(5, c.held) {
				t.Errorf("GatherRagged: %v, %v, %v", rows, offsets, err)
			}
			acquired("GatherRagged", c.ragged)
			v, err = d.SliceRagged("tokens", 3, 5, offsets)
			if err != nil || offsets[2] != 7 || v.Bytes()[4*6] != value(4, c.viewed) {
				t.Errorf("SliceRagged: %v, %v, %v", v.Bytes(), offsets, err)
			}
			acquired("SliceRagged", c.ragged)
			require.NoError(t, d.Warm("x", 0, 40))
			acquired("Warm", c.reads)
			for _, i := range []int{-1, 40} {
				if err := d.Gather(t.Context(), "x", []int{i}, dst[:5000]); err == nil {
					t.Errorf("record %d was read", i)
				}
			}
			acquired("no record", 0)
			p.fail = errors.New("no link")
			if err := d.Gather(t.Context(), "y", []int{1}, dst[:1]); (err == nil) != p.complete {
				t.Errorf("without a link: %v", err)
			}
		})
	}
}

// A read of complete files that shows bytes to be corrupt on their way is repeated through the pager.
func TestDistrust(t *testing.T) {
	p := &fakePager{complete: true, distrust: store.ErrCorrupt}
	d, err := Open(corrupted(t), WithPager(p), WithVerify(VerifyAlways))
	require.NoError(t, err)
	defer d.Close()
	dst := make([]byte, 5000)
	if err := d.Gather(t.Context(), "x", []int{9}, dst); err != nil || dst[0] != ^byte(9) {
		t.Errorf("%v, %v", dst[0], err)
	}
	if p.acquired != 1 || p.released != 1 {
		t.Errorf("%d times acquired, %d times released", p.acquired, p.released)
	}
	p.distrust = nil
	if err := d.Gather(t.Context(), "x", []int{9}, dst); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a corrupt record: %v", err)
	}
}

// corrupted returns such a dataset with a wrong byte in record 9.
func corrupted(t *testing.T) string {
	path := tokens(t)
	list, err := filepath.Glob(filepath.Join(path, "x-00000.npy"))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	require.NoError(t, os.Chmod(list[0], 0o600))
	f, err := os.OpenFile(list[0], os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	if _, err := f.WriteAt([]byte{200}, 4096+9*5000+17); err != nil {
		t.Fatal(err)
	}
	return path
}
