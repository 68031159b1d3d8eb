package feed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// framed returns text as a message.
func framed(text string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func TestReadRequest(t *testing.T) {
	r := bytes.NewReader(append(framed(`{"hello":{"version":4,"options":{"batch_size":2,"seed":18446744073709551615}}}`), framed(`{"release":[3,0]}`)...))
	want := []request{{Hello: &hello{4, Options{BatchSize: 2, Seed: 1<<64 - 1}, false, false}}, {Release: []int{3, 0}}}
	for _, w := range want {
		got, err := readRequest(r)
		if err != nil || !reflect.DeepEqual(got, w) {
			t.Errorf("read %+v, %v; want %+v", got, err, w)
		}
	}
	if _, err := readRequest(r); err != io.EOF {
		t.Errorf("after the last message: %v; want io.EOF", err)
	}
}

func TestBadRequests(t *testing.T) {
	for text, want := range map[string]string{
		``:                                    "none",
		`[]`:                                  "none",
		`{}`:                                  "0 parts",
		`{"release":[]}`:                      "0 parts",
		`{"stats":true,"release":[1]}`:        "2 parts",
		`{"stats":true}{"stats":true}`:        "continues after its end",
		`{"stats":true} x`:                    "continues after its end",
		`{"hello":{"options":{"bach":1}}}`:    "bach",
		`{"hello":{"options":{"seed":-1}}}`:   "seed",
		`{"release":[1e99]}`:                  "none",
		`{"release":[1],"number":2}`:          "number to start and stats",
		`{"stats":true,"held":[2]}`:           "held belongs to start",
		`{"hello":{"version":4},"quit":true}`: "quit",
		`{"hello":{"version":4,"new":1}}`:     `asks for "new", which this feed does not know; it is penstock devel (version 4`,
		`{"hello":{"version":5,"new":1}}`:     "speaks version 5 of the protocol, and this feed (penstock devel) version 4",
	} {
		if _, err := readRequest(bytes.NewReader(framed(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", text, err, want)
		}
	}
	if _, err := readRequest(bytes.NewReader([]byte{0, 0, 0, 128})); err == nil || !strings.Contains(err.Error(), "2147483648 bytes") {
		t.Errorf("a message of 2 GiB: %v", err)
	}
	whole := framed(`{"stats":true}`)
	for n := 1; n < len(whole); n++ {
		if _, err := readRequest(bytes.NewReader(whole[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the first %d bytes of a message: %v", n, err)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(framed(`{"hello":{"version":4,"options":{"batch_size":64,"fields":["images"],"filters":[["labels","in",[1,"cat"]]],"sampler":{"kind":"subset","indices":{"at":8,"count":2}}}}}`))
	f.Add(framed(`{"start":{"v":1,"n":5,"epoch":1}}`))
	f.Add(framed(`{"release":[0,1]}`))
	f.Add(framed(`{"stats":true}`))
	f.Add([]byte{255, 255, 15, 0, '{'})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		q, err := readRequest(r)
		if err != nil {
			return
		}
		if q.Hello == nil && q.Start == nil && len(q.Release) == 0 && !q.Stats {
			t.Errorf("a request of nothing: %q", data)
		}
		if used := len(data) - r.Len(); used != 4+int(binary.LittleEndian.Uint32(data)) {
			t.Errorf("%d bytes read of %q", used, data)
		}
	})
}
