package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/tensor"
)

// A URL is not a path; errors state that instead of "no such file".
func TestURLsAreNotChanged(t *testing.T) {
	const url = "s3://bucket/ds"
	calls := map[string]func() error{
		"log":   func() error { _, err := edit.At(url).Log(); return err },
		"tag":   func() error { return edit.At(url).Tag("a", 1) },
		"prune": func() error { _, err := edit.At(url).Prune(edit.PruneOptions{}); return err },
		"open":  func() error { _, err := store.Open(url, store.OpenOptions{}); return err },
		"column": func() error {
			_, err := edit.At(url).AddColumn(store.Field{Spec: tensor.Spec{Name: "a", DType: tensor.Int64}}, nil, edit.Options{})
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "edit.InBucket") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
