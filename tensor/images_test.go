package tensor_test

import (
	"bytes"
	"testing"

	"github.com/penstock/penstock/tensor"
)

// FuzzCutImage takes records apart: what AppendImage makes of the parts is the record.
func FuzzCutImage(f *testing.F) {
	f.Add([]byte{})
	f.Add(tensor.AppendImage(tensor.AppendImage(nil, []byte("one")), nil))
	f.Add([]byte{3, 0, 0, 0, 1})
	f.Add([]byte{255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, record []byte) {
		var again []byte
		files := 0
		for rest := record; len(rest) > 0; files++ {
			file, more, err := tensor.CutImage(rest)
			if err != nil {
				if _, counted := tensor.CountImages(record); counted == nil {
					t.Error("CountImages has no error")
				}
				return
			}
			again, rest = tensor.AppendImage(again, file), more
		}
		if n, err := tensor.CountImages(record); n != files || err != nil || !bytes.Equal(again, record) {
			t.Errorf("%d files, %v, of %d; %q of %q", n, err, files, again, record)
		}
	})
}
