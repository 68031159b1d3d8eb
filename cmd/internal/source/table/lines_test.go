package table

import (
	"strings"
	"testing"
)

func TestRowsHaveALimit(t *testing.T) {
	f := &lineFeeder{lines: &lineReader{r: strings.NewReader("")}, rest: "0123456789", left: 5}
	if _, err := f.Read(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "is a quote missing?") {
		t.Errorf("error %v", err)
	}
}
