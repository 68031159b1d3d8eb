package main

import (
	"encoding/binary"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/arch/arm64/arm64asm"
)

var wordLine = regexp.MustCompile(`(?m)^\tWORD +\$(0x[0-9a-f]{8}) // (.+)$`)

// TestWordsAreWhatTheySay takes each word apart and compares it with its comment.
func TestWordsAreWhatTheySay(t *testing.T) {
	for pkg, kernels := range packages {
		words := wordLine.FindAllStringSubmatch(assembly(kernels()), -1)
		if len(words) < 50 {
			t.Errorf("%s: %d words", pkg, len(words))
		}
		for _, w := range words {
			checkWord(t, w)
		}
	}
}

func checkWord(t *testing.T, w []string) {
	t.Helper()
	code, err := strconv.ParseUint(w[1], 0, 32)
	if err != nil {
		t.Fatal(err)
	}
	in, err := arm64asm.Decode(binary.LittleEndian.AppendUint32(nil, uint32(code)))
	if err != nil || in.String() != w[2] {
		t.Errorf("%s is %v (%v), not %s", w[1], in, err, w[2])
	}
}
