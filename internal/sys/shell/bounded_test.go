package shell

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

func TestBounded(t *testing.T) {
	long := errors.Join(errors.New("beginning"+strings.Repeat("x", 1<<20)+"end"), fs.ErrNotExist)
	err := Bounded(long)
	if text := err.Error(); len(text) > longest || !strings.HasPrefix(text, "beginning") || !strings.HasSuffix(text, "end\n"+fs.ErrNotExist.Error()) {
		t.Errorf("%d bytes: %.40s", len(text), text)
	}
	if !errors.Is(err, fs.ErrNotExist) || Bounded(err) != err || Bounded(nil) != nil {
		t.Error("the error is another one")
	}
}
