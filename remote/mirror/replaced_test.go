package mirror

import (
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// The error of a dataset that is replaced while it is read is not that of wrong or missing bytes.
func TestReplacedWhileItIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		other bool // exists afterwards
		gone  func(key string) bool
		kind  error
	}{
		"by another":       {true, func(string) bool { return true }, remote.ErrChanged},
		"by one to come":   {false, func(string) bool { return true }, remote.ErrChanged},
		"a shard is gone":  {false, func(key string) bool { return strings.Contains(key, "images") }, remote.ErrNotFound},
		"a shard is wrong": {true, func(key string) bool { return strings.Contains(key, "images") }, store.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := pair(t, 300)
			d := open(t, b, "ds", Options{Fields: []string{"images"}})
			replace(t, b, c.other, c.gone)
			err := d.Gather(t.Context(), "images", []int{10}, make([]byte, 70*70))
			if !errors.Is(err, c.kind) || errors.Is(err, remote.ErrChanged) != (c.kind == remote.ErrChanged) {
				t.Errorf("error %v, want %v", err, c.kind)
			}
		})
	}
}

// replace removes objects, and puts those of another dataset in their place if other is set.
func replace(t *testing.T, b *membucket.Memory, other bool, gone func(key string) bool) {
	t.Helper()
	with := new(membucket.Memory)
	upload(t, build(t, 120), with, "ds")
	page, err := b.ListPage(t.Context(), "", "", nil)
	if err != nil || page.Next != nil {
		t.Fatal(err, page.Next)
	}
	for _, o := range page.Objects {
		if !gone(o.Key) {
			continue
		}
		require.NoError(t, b.Delete(t.Context(), o.Key))
		data, _, err := requests.NewClient(with, remote.Policy{}).ReadAll(t.Context(), o.Key, 1<<30)
		if err == nil && other {
			for i := range data {
				data[i] ^= byte(i % 7) // bytes of other records
			}
			b.Put(o.Key, data)
		}
	}
}
