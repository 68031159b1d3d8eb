package summary

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestStepsKeepTheOrderOfTheRecipe(t *testing.T) {
	recipe := `[{"op":"Resize","size":[256],"fit":"shorter","fill":null,"antialias":true},
		{"op":"Normalize","mean":[0.5,0.25],"std":[1],"strict":false}]`
	var got []string
	for _, s := range Steps(json.RawMessage(recipe)) {
		got = append(got, s.Op+": "+strings.Join(s.Params, ", "))
	}
	want := []string{"Resize: size 256, fit shorter, antialias", "Normalize: mean (0.5, 0.25), std 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStepsOfSomethingElse(t *testing.T) {
	for _, recipe := range []string{"", "null", "{}", "[1]x", `["a"]`, "[[1]]"} {
		for _, s := range Steps(json.RawMessage(recipe)) {
			if s.Op != "" {
				t.Errorf("%q: got %+v", recipe, s)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	got := wrap([]string{"one", "two", "three", "a very long item"}, 10)
	if want := []string{"one, two,", "three,", "a very long item"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := wrap(nil, 10); got != nil {
		t.Errorf("got %q of nothing", got)
	}
}
