package array

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
)

// A file of more arrays than a dataset has fields is refused before a batch of them is described.
func TestMoreArraysThanFields(t *testing.T) {
	_, err := New("hdf5", "wide.h5", "wide", make([]Column, layout.MaxFields+1))
	if err == nil || !strings.Contains(err.Error(), "source wide.h5: 10001 arrays, and a dataset has at most 10000 fields; choose some with --fields") {
		t.Errorf("error %v", err)
	}
}
