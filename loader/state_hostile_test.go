package loader_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// A State that was changed or made up is refused where it is decoded or resumed.
func TestHostileStates(t *testing.T) {
	m := newMemorySource(1000, 2)
	o := loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}, Seed: 7, Workers: 2, Unordered: true}
	base, err := json.Marshal(open(t, m, o).State())
	require.NoError(t, err)
	var parts map[string]any
	require.NoError(t, json.Unmarshal(base, &parts))
	set := func(name, value string) string {
		text := "{"
		for k, v := range parts {
			if b, err := json.Marshal(v); err == nil && k != name {
				text += fmt.Sprintf("%q:%s,", k, b)
			}
		}
		return text + fmt.Sprintf("%q:%s}", name, value)
	}
	if _, err := resume(m, o, set("step", "7")); err != nil {
		t.Fatalf("an honest one: %v", err)
	}
	for name, text := range map[string]string{
		"empty":               "",
		"null":                "null",
		"list":                "[]",
		"nested":              strings.Repeat(`{"done":`, 100_000),
		"NaN":                 set("step", "NaN"),
		"1e999":               set("step", "1e999"),
		"half":                set("step", "0.5"),
		"negative step":       set("step", "-1"),
		"least step":          set("step", "-9223372036854775808"),
		"step beyond":         set("step", "101"),
		"largest step":        set("step", "9223372036854775807"),
		"2^64 steps":          set("step", "18446744073709551616"),
		"step in words":       set("step", `"7"`),
		"epoch of 2^63":       set("epoch", "9223372036854775808"),
		"epoch in words":      set("epoch", `"../../etc"`),
		"negative records":    set("n", "-1"),
		"2^62 records":        set("n", "4611686018427387904"),
		"negative batch":      set("batch", "-10"),
		"batch of 2^62":       set("batch", "4611686018427387904"),
		"negative seed":       set("seed", "-7"),
		"version of 2^40":     set("v", "1099511627776"),
		"version 0":           set("v", "0"),
		"sampler of 1 MiB":    set("sampler", `"`+strings.Repeat("x", 1<<20)+`"`),
		"dataset that is out": set("dataset", `"../../../etc/passwd"`),
		"done in words":       set("done", `"all of them"`),
		"done with a sign":    set("done", `"-1"`),
		"done of 16 MiB":      set("done", `"`+strings.Repeat("f", 16<<20)+`"`),
		"done that is true":   set("done", "true"),
		"done with NUL":       set("done", `"\u0000"`),
	} {
		if st, err := resume(m, o, text); err == nil {
			t.Errorf("%s: taken as %+v", name, st)
		} else if len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

func resume(src loader.Source, o loader.Options, text string) (st loader.State, err error) {
	if err := json.Unmarshal([]byte(text), &st); err != nil {
		return st, err
	}
	ld, err := loader.Resume(src, o, st)
	if err != nil {
		return st, err
	}
	return st, ld.Close()
}
