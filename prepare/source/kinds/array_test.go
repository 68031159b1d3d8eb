package kinds

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	npyfile "github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
)

func TestNPYHeader(t *testing.T) {
	cases := []struct {
		header string
		want   string // type and shape, or a part of the error
	}{
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n", "float32 [3 4]"},
		{`{"shape":(7,),"descr":"|u1","fortran_order":False}`, "uint8 [7]"},
		{"{'descr': '>i8', 'fortran_order': True, 'shape': (2,), }", "big int64 [2]"},
		{"{'descr': '|b1', 'fortran_order': False, 'shape': (), }", "bool []"},
		{"{'descr': '<f2', 'fortran_order': False, 'shape': (10L, 2L), }", "float16 [10 2]"},
		{"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }", "Fortran order"},
		{"{'descr': '<U5', 'fortran_order': False, 'shape': (3,), }", "texts, and no numbers"},
		{"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", `elements of type "|O"`},
		{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", "records with named fields"},
		{"{'descr': '<f4', 'fortran_order': False}", "not NumPy's"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", "not NumPy's"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "not NumPy's"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "not NumPy's"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", "not NumPy's"},
		{"{", "not NumPy's"},
		{"", "not NumPy's"},
	}
	for _, c := range cases {
		for _, version := range []byte{1, 2, 3} {
			h, err := array.ReadNPY(bytes.NewReader(npy(version, c.header, 0)))
			got := fmt.Sprintf("%v %v", h.DType, h.Shape)
			if h.BigEndian {
				got = "big " + got
			}
			if err != nil {
				got = err.Error()
			}
			if err == nil && got != c.want || !strings.Contains(got, c.want) {
				t.Errorf("version %d, %s: %s, want %s", version, c.header, got, c.want)
			}
		}
	}
	for _, data := range []string{"", npyfile.Magic, "\x93NUMPY\x04\x00aaaaaaa", "\x93NUMPY\x01\x00\xff\xff{", "\x93NUMPY\x02\x00\xff\xff\xff\xff{}"} {
		if h, err := array.ReadNPY(strings.NewReader(data)); err == nil {
			t.Errorf("%q is read as %+v", data, h)
		}
	}
}

// A header that promises more than the file holds is found out before anything is read.
func TestNPYCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	whole := npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", 48)
	for _, n := range []int{5, 20, len(whole) - 1} {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o666))
		if _, err := Open(t.Context(), path, source.Options{Kind: "npy"}); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// fortran returns a .npy file in Fortran order of the elements 0, 1, 2 ... in C order, each of
// size bytes, and these elements in C order.
func fortran(descr string, size int, shape ...int) (file, want []byte) {
	elements := 1
	text := ""
	for _, n := range shape {
		elements *= n
		text += fmt.Sprintf("%d,", n)
	}
	file = npy(2, fmt.Sprintf("{'descr': '%s', 'fortran_order': True, 'shape': (%s), }", descr, text), elements*size)
	data := file[len(file)-elements*size:]
	for i := range elements {
		at, stride, rest := 0, 1, i
		inner := elements
		for _, n := range shape {
			inner /= n
			at += rest / inner * stride
			rest, stride = rest%inner, stride*n
		}
		var e [8]byte
		binary.LittleEndian.PutUint64(e[:], uint64(i)*0x9E3779B97F4A7C15)
		copy(data[at*size:][:size], e[:])
		if descr[0] == '>' {
			slices.Reverse(data[at*size:][:size])
		}
		want = append(want, e[:size]...)
	}
	return file, want
}

// Arrays in Fortran order are read in blocks, from whole columns or from strips of them.
func TestNPYInFortranOrder(t *testing.T) {
	for _, c := range []struct {
		descr string
		size  int
		shape []int
	}{
		{"|u1", 1, []int{5, 3}}, {"<i2", 2, []int{4, 3, 2}}, {"<f4", 4, []int{7, 2, 3, 5}}, {">f8", 8, []int{6, 17}}, {">u2", 2, []int{1, 9, 2}},
		{"<f8", 8, []int{9000, 5}},         // strips, one block
		{"<f8", 8, []int{2100, 2, 3, 180}}, // and two blocks
		{"<f8", 8, []int{3, 1500, 500}},    // whole columns, two blocks
	} {
		file, want := fortran(c.descr, c.size, c.shape...)
		path := write(t, "x.npy", file)
		s := mustOpen(t, path, source.Options{Kind: "npy"})
		record, v, at := len(want)/c.shape[0], source.NewValues(1), 0
		for sample, err := range s.Samples() {
			if err == nil {
				err = sample.Data.Read(v)
			}
			require.NoError(t, err)
			if !bytes.Equal(v.Get(0), want[at:][:record]) {
				t.Fatalf("%s %v: sample %s is not as in C order", c.descr, c.shape, sample.Name)
			}
			at += record
		}
		if at != len(want) || s.Close() != nil {
			t.Errorf("%s %v: %d bytes of %d", c.descr, c.shape, at, len(want))
		}
	}
}

// A file that loses its end while it is read is an error.
func TestNPYInFortranOrderCutShort(t *testing.T) {
	file, _ := fortran("<f4", 4, 50, 40)
	path := write(t, "x.npy", file)
	s := mustOpen(t, path, source.Options{Kind: "npy"})
	defer s.Close()
	require.NoError(t, os.Truncate(path, int64(len(file)-1)))
	for _, err := range s.Samples() {
		if err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("error %v", err)
		}
	}
}

func FuzzIDX(f *testing.F) {
	f.Add([]byte("\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x02abcdefgh"))
	f.Add([]byte("\x00\x00\x0d\x01\xff\xff\xff\xff"))
	f.Add([]byte("\x00\x00\x08\x01\x00\x00\x00\x00"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"))
	f.Fuzz(func(t *testing.T, data []byte) { readAllOf(t, "idx", "x-images-idx-ubyte", data) })
}

// A folder of CIFAR with files for training and for tests has both as splits; one with test files
// alone is read too.
func TestCIFARFolder(t *testing.T) {
	batch := func(records int, label byte) []byte {
		return bytes.Repeat(append([]byte{label}, make([]byte, 3*32*32)...), records)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o666))
	}
	look := func(splits []string, want []string) {
		t.Helper()
		s, err := Open(context.Background(), dir, source.Options{})
		require.NoError(t, err)
		defer s.Close()
		var got []string
		v := source.NewValues(2)
		for sample, err := range s.Samples() {
			if err == nil {
				err = sample.Data.Read(v)
			}
			require.NoError(t, err)
			got = append(got, fmt.Sprint(sample.Split, v.Get(1)[0]))
		}
		if !slices.Equal(got, want) || !slices.Equal(s.Info().Splits, splits) {
			t.Errorf("splits %q, samples %q; want %q, %q", s.Info().Splits, got, splits, want)
		}
	}
	write("test_batch.bin", batch(2, 7))
	look(nil, []string{"7", "7"})
	write("data_batch_1.bin", batch(1, 3))
	write("data_batch_2.bin", batch(2, 4))
	look([]string{"train", "test"}, []string{"train3", "train4", "train4", "test7", "test7"})
}

func FuzzCIFAR(f *testing.F) {
	f.Add(make([]byte, 3073))
	f.Add(make([]byte, 3072))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) { readAllOf(t, "cifar", "data_batch_1.bin", data) })
}
