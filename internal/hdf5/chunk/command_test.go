package chunk

import "testing"

// Commands that are shown have names of datasets as words that a shell does not run, or are not shown.
func TestCommandsQuoteNames(t *testing.T) {
	if got, want := ConvertCommand("a b.h5", "c",
		"x'$(touch X)'y"), `penstock preprocess 'a b.h5' c --fields 'x'\''$(touch X)'\''y'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, name := range []string{"a'$(touch X)'b\u200b", "a\nb"} {
		if got := ConvertCommand("a.h5", "b", name); got != "" {
			t.Errorf("%q: %s", name, got)
		}
		if got := ConvertCommand(name, "b", ""); got != "" {
			t.Errorf("%q: %s", name, got)
		}
	}
}
