package measure

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// Every contender does every item once a round, and Rounds reports the time of one item.
func TestRounds(t *testing.T) {
	done := map[string][]int{}
	one := func(name string, items int, wall float64) Contender {
		return Contender{Name: name, Items: items, Do: func(from, to int) (Cost, error) {
			for i := from; i < to; i++ {
				done[name] = append(done[name], i)
			}
			return Cost{Wall: wall * float64(to-from), CPU: 1}, nil
		}}
	}
	results, err := Rounds(3, 10, 4, []Contender{one("a", 0, 2), one("b", 5, 3)})
	if err != nil {
		t.Fatal(err)
	}
	if len(done["a"]) != 40 || len(done["b"]) != 20 {
		t.Errorf("%d and %d items done, want 40 and 20", len(done["a"]), len(done["b"]))
	}
	if got := results[1].Over(results[0], Wall).String(); got != "1.50 [1.50..1.50]" {
		t.Errorf("ratio %s", got)
	}
	if got := results[0].Median(CPU); got != 0.3 {
		t.Errorf("CPU time %v, want 0.3", got)
	}
}

func TestRoundsError(t *testing.T) {
	fails := Contender{Name: "x", Do: func(int, int) (Cost, error) { return Cost{}, io.EOF }}
	if _, err := Rounds(1, 1, 1, []Contender{fails}); !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "x: ") {
		t.Errorf("error %v", err)
	}
}

func TestRatio(t *testing.T) {
	for _, c := range []struct {
		list []float64
		want string
	}{
		{[]float64{3, 1, 2}, "2.00 [1.00..3.00]"},
		{[]float64{10, 20, 4, 200}, "15.0 [4.00..200]"},
		{nil, "0.00 [0.00..0.00]"},
	} {
		if got := spread(c.list).String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.list, got, c.want)
		}
	}
}

func TestServe(t *testing.T) {
	var out bytes.Buffer
	err := Serve(strings.NewReader(`{"do":"a","to":3}`+"\n"+`{"do":"b"}`+"\n"), &out, func(q Request) (Answer, error) {
		if q.Do == "b" {
			return Answer{}, io.EOF
		}
		return Answer{Cost: Cost{Wall: float64(q.To)}}, nil
	})
	if want := `{"wall":3,"cpu":0}` + "\n" + `{"wall":0,"cpu":0,"error":"EOF"}` + "\n"; err != nil || out.String() != want {
		t.Errorf("error %v, answers %s", err, out.String())
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	Table(&out, [][]string{{"a", "bb"}, {"ccc", "d"}})
	if want := "| a   | bb |\n| --- | -- |\n| ccc | d  |\n\n"; out.String() != want {
		t.Errorf("%s", out.String())
	}
}
