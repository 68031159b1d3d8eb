package prepare

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/samples"
)

// A checkpoint's note that was changed or made up is an error, and never a crash, in the run that resumes with it too.
func TestHostileNotes(t *testing.T) {
	c := DefaultConfig()
	c.Dedup = true
	c.Stratify.Wanted = true
	c.Split, _ = samples.ParseSplit("train=0.5,val=0.5")
	honest := newRunLog(c)
	honest.samples = 3
	good, err := honest.note()
	require.NoError(t, err)
	set := func(name, value string) string {
		var parts map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(good, &parts))
		delete(parts, name)
		rest, err := json.Marshal(parts)
		require.NoError(t, err)
		return strings.TrimSuffix(string(rest), "}") + `,"` + name + `":` + value + "}"
	}
	take := func(text string) error {
		b := newRunLog(c)
		_, _, err := b.restore([]json.RawMessage{json.RawMessage(text)})
		if err == nil {
			b.splitter.Choose(samples.Digest{}, samples.Digest{}, 1)
		}
		return err
	}
	if err := take(string(good)); err != nil {
		t.Fatalf("an honest one: %v", err)
	}
	for name, text := range map[string]string{
		"empty":               "",
		"null":                "null",
		"list":                "[]",
		"nested":              strings.Repeat(`{"skipped":[`, 100_000),
		"negative samples":    set("samples", "-1"),
		"2^63 samples":        set("samples", "9223372036854775808"),
		"NaN":                 set("samples", "NaN"),
		"1e999":               set("bytes", "1e999"),
		"negative bytes":      set("bytes", "-5"),
		"negative duplicates": set("duplicates", "-1"),
		"more duplicates":     set("duplicates", "4"),
		"empty print":         set("print", `""`),
		"another print":       set("print", `"AAAA"`),
		"print of 16 MiB":     set("print", `"`+strings.Repeat("A", 16<<20)+`"`),
		"no names":            set("names", `""`),
		"names in words":      set("names", `"../../x"`),
		"skipped is a number": set("skipped", "7"),
		"short strata":        set("strata", `{"1":[5]}`),
		"no strata":           set("strata", `{"1":[]}`),
		"long strata":         set("strata", `{"1":[1,2,3]}`),
		"negative strata":     set("strata", `{"1":[1,-2]}`),
		"class of 2^70":       set("strata", `{"1180591620717411303424":[1,2]}`),
	} {
		if err := take(text); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
