package producer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

func message(kind byte, body string) string {
	return string(binary.LittleEndian.AppendUint64([]byte{kind}, uint64(len(body)))) + body
}

const (
	begin  = `{"version":2,"samples":-1,"checkpoint":0,"splits":["train","val"]}`
	fields = `[{"name":"x","dtype":"uint16","shape":[2]},{"name":"f","dtype":"uint8","shape":[],"ragged":true}]`
)

// record returns a sample of those fields.
func record(split byte, x, f string, path bool) string {
	n := uint64(len(f))
	if path {
		n |= isNamed
	}
	return string(binary.LittleEndian.AppendUint64([]byte{'R', split}, n)) + x + f
}

// read returns the samples of a stream after its first two messages, as strings, and how it ends.
func read(t *testing.T, start Start, stream string) (list []string, err error) {
	t.Helper()
	var out bytes.Buffer
	p, err := Open(t.Context(), strings.NewReader(message('B', begin)+message('F', fields)+stream), &out)
	require.NoError(t, err)
	if err := p.Answer(start); err != nil || !p.Started() || !strings.HasSuffix(out.String(), "}\n") {
		t.Fatalf("%v, answer %q", err, &out)
	}
	require.NoError(t, p.ReadFields())
	for range p.Samples() { // the first pass looks at one sample only
		break
	}
	v := source.NewValues(2)
	for s, err := range p.Samples() {
		if err != nil {
			return list, err
		}
		v.Clear()
		if err := s.Data.Read(v); err != nil {
			list = append(list, s.Name+": "+err.Error())
			continue
		}
		list = append(list, s.Name+" "+s.Split+" "+string(v.Get(0))+" "+string(v.Get(1)))
	}
	for _, err := range p.Samples() {
		if err == nil {
			t.Error("a third pass gives a sample")
		}
	}
	return list, nil
}

func TestSamples(t *testing.T) {
	long := strings.Repeat("y", 3<<20)
	got, err := read(t, Start{First: 5, End: -1}, record(0, "abcd", "", false)+record(2, "efgh", long, false)+record(1, "ijkl", "a/f.jpg\x00con\x00tent", true)+
		message('X', "no such thing")+message('X', "b/g.jpg\x00gone")+record(0, "abcd", "h\x00", true)+"E")
	want := []string{"5  abcd ", "6 val efgh " + long, "7 a/f.jpg train ijkl con\x00tent", "8: no such thing", "9 b/g.jpg: gone", "10 h  abcd "}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("error %v, samples %.300q", err, got)
	}
}

func TestStreamsThatAreWrong(t *testing.T) {
	good := record(0, "abcd", "e", false)
	for name, c := range map[string]struct {
		start        Start
		stream, want string
	}{
		"no end":       {Start{End: -1}, good, ErrGone.Error()},
		"cut":          {Start{End: -1}, good + good[:len(good)-1], ErrGone.Error()},
		"nothing":      {Start{End: -1}, "", ErrGone.Error()},
		"kind":         {Start{End: -1}, good + "hello", "'h' instead of a sample"},
		"split":        {Start{End: -1}, record(3, "abcd", "", false), "split 3 of 2"},
		"size":         {Start{End: -1}, "R\x00" + strings.Repeat("\xff", 6) + "\x00\x00", "too many"},
		"path":         {Start{End: -1}, record(0, "abcd", strings.Repeat("x", maxText+1)+"\x00", true), "without the name of a file"},
		"no name":      {Start{End: -1}, record(0, "abcd", "content", true), "without the name of a file"},
		"reason":       {Start{End: -1}, message('X', strings.Repeat("x", maxText+1)), "a reason of"},
		"too few":      {Start{End: 2}, good + "E", "ends after sample 1"},
		"too many":     {Start{End: 1}, good + good + "E", "only 1 were announced"},
		"first beyond": {Start{First: 2, End: 1}, good + "E", "only 1 were announced"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, c.start, c.stream); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestBeginsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                            ErrGone.Error(),
		"sample,label\n":              "use penstock.Writer",
		message('B', `{"version":1}`): "version 1",
		message('B', `{"version":2`):  "message 'B'",
		message('B', begin)[:20]:      ErrGone.Error(),
		message('B', `{"version":2,"samples":-2}`):                "out of range",
		"B\xff\xff\xff\xff\xff\xff\xff\xff":                       "a message of",
		message('B', `{"version":2,"checkpoint":-1,"samples":1}`): "out of range",
	} {
		if _, err := Open(t.Context(), strings.NewReader(text), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{`{}`, `[]`, `[{"name":"x","dtype":"complex64","shape":[]}]`, `[{"name":"../x","dtype":"uint8","shape":[]}]`, `[{"name":"x","dtype":"uint8","shape":[-1]}]`} {
		p, err := Open(t.Context(), strings.NewReader(message('B', begin)+message('F', text)), io.Discard)
		require.NoError(t, err)
		if err := p.ReadFields(); err == nil {
			t.Errorf("fields %s are taken", text)
		}
	}
}

// A producer that says nothing does not keep the program from ending.
func TestCancel(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	time.AfterFunc(10*time.Millisecond, func() { cancel(stop) })
	if _, err := Open(ctx, r, io.Discard); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(message('B', begin) + message('F', fields) + record(0, "abcd", "e", false) + "E"))
	f.Add([]byte(message('B', begin) + message('F', fields) + message('X', "no") + "E"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Open(t.Context(), bytes.NewReader(data), io.Discard)
		if err != nil || p.Answer(Start{End: -1}) != nil || p.ReadFields() != nil {
			return
		}
		for _, err := range p.Samples() {
			if err != nil {
				return
			}
		}
	})
}
