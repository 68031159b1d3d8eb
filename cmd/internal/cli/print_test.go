package cli

import (
	"bytes"
	"testing"
)

// Lines that have to be seen are not lost among others.
func TestPrint(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, "feed", false)
	p.Warn("a request is repeated")
	p.Warn("another one")
	p.Print("the disk is full")
	p.Print("photos are read as they are")
	if want := "feed: a request is repeated\nfeed: the disk is full\nfeed: photos are read as they are\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
