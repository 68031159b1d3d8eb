package cli

import (
	"testing"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain\nÄ 日本": "plain\nÄ 日本", "a\x1b[31mb": `a\x1b[31mb`, "tab\there": `tab\there`, "\u202egpj": `\u202egpj`, "": "",
	} {
		if got := Printable(text); got != want {
			t.Errorf("Printable(%q) = %q, want %q", text, got, want)
		}
	}
}
