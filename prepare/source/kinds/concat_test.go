package kinds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/prepare/source"
)

func TestJoinedColumns(t *testing.T) {
	const csv = "y,p0,p1,p2,p10,q+r,name\n1, 1,2,3,4,5,a\n2,6,7,,9,0.5,b\n3,300,1,1,1,1,c\n"
	const jsonl = `{"p0":1,"a":{"k":2},"p1":3}` + "\n" + `{"p1":6,"a":{"k":5},"p0":4}` + "\n" + `{"p0":7,"a":{"k":8}}` + "\n"
	const late = `{"p0":1,"p1":2,"q":0}` + "\n" + `{"p1":4,"other":5,"p0":3}` + "\n" + `{"p0":7,"p1":8,"p9":9}` + "\n"
	for _, c := range []struct {
		name, text, fields string
		want               string   // fields
		samples            []string // or parts of them
	}{
		{"x.csv", csv, "y,p*=x:uint8", "y int64()|x uint8(4,)", []string{"x.csv:2 0100000000000000 01020304", "x.csv:3: column p2: it is missing", `x.csv:4: column p0: "300" is not a value of type uint8`}},
		{"x.csv", csv, "p?=x:int8[3,1]", "x int8(3, 1)", []string{"x.csv:2 010203", "x.csv:3: column p2", "x.csv:4: column p0"}},
		{"x.csv", csv, "p10+p0=x:int16", "x int16(2,)", []string{"x.csv:2 04000100", "x.csv:3 09000600", "x.csv:4 01002c01"}},
		{"x.csv", csv, "q+r=x:float16", "x float16()", []string{"x.csv:2 0045", "x.csv:3 0038", "x.csv:4 003c"}}, // a name, as it is
		{"x.csv", csv, "y+p*=x,y,p0", "x int64(5,)|y int64()|p0 int64()", []string{"x.csv:2 01000000000000000100000000000000", "x.csv:3: column p2", "x.csv:4 0300000000000000"}},
		{"x.csv", csv, "p1*+q?r*=x", "x float32(3,)", []string{"x.csv:2 00000040000080400000a040", "x.csv:3 0000e040000010410000003f", "x.csv:4"}},
		{"x.jsonl", jsonl, "p*+a.k=x:uint8", "x uint8(3,)", []string{"x.jsonl:1 010302", "x.jsonl:2 040605", "x.jsonl:3: column p1: it is missing"}},
		{"x.jsonl", late, "p*=x:uint8[2]", "x uint8(2,)", []string{"x.jsonl:1 0102", "x.jsonl:2 0304", `x.jsonl:3: column "p9" of p* was not in the first row`}},
	} {
		fields, samples, err := describe(t, write(t, c.name, c.text), source.Options{Fields: c.fields})
		if err != nil || strings.Join(fields, "|") != c.want || len(samples) != len(c.samples) {
			t.Errorf("%s: fields %q, samples %q, %v", c.fields, fields, samples, err)
			continue
		}
		for i, want := range c.samples {
			if !strings.HasPrefix(samples[i], want) {
				t.Errorf("%s: sample %q, want %q", c.fields, samples[i], want)
			}
		}
	}
}

func TestJoinedColumnsThatAreRefused(t *testing.T) {
	path := write(t, "x.csv", "p0,p1,name,v\n1,2,a,[1;2]\n")
	for fields, want := range map[string]string{
		"p*":               "2 columns become one field, which needs a name: p*=NAME",
		"z*=x":             `there is no column "z*"`,
		"p*+name=x":        `column "name" holds no single numbers`,
		"p*+v=x":           `column "v" holds no single numbers`,
		"p*=x:uint8[3]":    "2 columns of single numbers make no uint8[3]",
		"p*=x:label":       "make no label",
		"p*=x:float32[*]":  "make no float32[*]",
		"p*=x,p0=x":        `are both the field "x"`,
		"p0+zz=x:uint8[2]": `there is no column "zz"`,
	} {
		if _, err := Open(t.Context(), path, source.Options{Fields: fields}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", fields, err, want)
		}
	}
}

// A table with very many columns of numbers gets a hint how to make one array of them.
func TestHintToJoin(t *testing.T) {
	for format, want := range map[string]string{"pixel%d": "--fields 'pixel*=x,...'", "%dth": "--fields '0th+1th+...=x,...'"} {
		var names, row []string
		for i := range 64 {
			names, row = append(names, fmt.Sprintf(format, i)), append(row, "1")
		}
		text := "label," + strings.Join(names, ",") + "\n0," + strings.Join(row, ",") + "\n"
		s := mustOpen(t, write(t, "x.csv", text), source.Options{})
		if hints := s.Info().Hints; len(hints) != 1 || !strings.Contains(hints[0], want) || !strings.HasPrefix(hints[0], "64 columns of numbers") {
			t.Errorf("hints %q, want %s", hints, want)
		}
	}
}
