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
	words := wordLine.FindAllStringSubmatch(assembly(kernels()), -1)
	if len(words) < 100 {
		t.Fatalf("%d words", len(words))
	}
	for _, w := range words {
		code, err := strconv.ParseUint(w[1], 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		in, err := arm64asm.Decode(binary.LittleEndian.AppendUint32(nil, uint32(code)))
		if err != nil || in.String() != w[2] {
			t.Errorf("%s is %v (%v), not %s", w[1], in, err, w[2])
		}
	}
}
