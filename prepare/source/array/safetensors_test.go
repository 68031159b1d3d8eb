package array

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/tensor"
)

// file returns a file of safetensors.
func file(header string, data ...byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

func TestSafetensors(t *testing.T) {
	data := []byte{1, 0, 2, 0, 3, 0, 4, 0, 9}
	good := file(`{"__metadata__":{"a":"b"},"y":{"dtype":"U8","shape":[],"data_offsets":[8,9]},`+
		`"x":{"dtype":"I16","shape":[2,2],"data_offsets":[0,8]},"f8":{"dtype":"F8_E4M3","shape":[0],"data_offsets":[0,0]}}`, data...)
	columns, bad, err := tensorsOf(bytes.NewReader(good), int64(len(good)))
	if err != nil || len(columns) != 2 || len(bad) != 1 || bad[0].Name != "f8" {
		t.Fatalf("%v, %v, %v", columns, bad, err)
	}
	x, y := columns[0], columns[1]
	if x.Field.DType != tensor.Int16 || x.Count != 2 || x.Single || !y.Single {
		t.Errorf("%+v, %+v", x, y)
	}
	for _, c := range columns {
		b, err := c.All(nil)
		if want := map[string][]byte{"x": data[:8], "y": data[8:]}[c.Field.Origin]; err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s: %v, %v", c.Field.Origin, b, err)
		}
	}
	for header, want := range map[string]string{
		`{"x":{"dtype":"U8","shape":[9],"data_offsets":[0,8]}}`:       "bytes 0 to 8 of 9 are not the 9",
		`{"x":{"dtype":"U8","shape":[9],"data_offsets":[1,10]}}`:      "bytes 1 to 10 of 9",
		`{"x":{"dtype":"U8","shape":[-1],"data_offsets":[0,8]}}`:      "axis of -1",
		`{"x":{"dtype":"F64","shape":[1099511627776,1099511627776]}}`: "",
		`{"x":{"dtype":"U8","shape":[2],"data_offsets":[-1,1]}}`:      "bytes -1 to 1",
		`{"x":3}`: "header",
		`[`:       "no file of safetensors",
	} {
		b := file(header, data...)
		_, bad, err := tensorsOf(bytes.NewReader(b), int64(len(b)))
		if text := fmt.Sprint(bad, err); (len(bad) == 0) == (err == nil) || !strings.Contains(text, want) {
			t.Errorf("%s: %s", header, text)
		}
	}
	for _, b := range [][]byte{nil, {1}, file("")[:8], binary.LittleEndian.AppendUint64(nil, 1<<60)} {
		if columns, bad, err := tensorsOf(bytes.NewReader(b), int64(len(b))); err == nil {
			t.Errorf("%x: %v, %v", b, columns, bad)
		}
	}
}
