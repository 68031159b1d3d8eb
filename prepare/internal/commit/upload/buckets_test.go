package upload

import (
	"context"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/remote"
)

// The ranks of one machine share a folder for spools. One that begins while another removes the folder, which is
// empty then, makes it again.
func TestSpoolsOfRanks(t *testing.T) {
	open := OpenURL
	t.Cleanup(func() { OpenURL = open })
	OpenURL = func(_ context.Context, text string) (remote.Bucket, *remote.URL, error) {
		u, err := remote.ParseURL(text)
		return new(membucket.Memory), u, err
	}
	spool := t.TempDir()
	var all sync.WaitGroup
	for rank := range 4 {
		all.Go(func() {
			for range 300 {
				b := &Buckets{Context: t.Context()}
				_, err := b.Destination("s3://lab/ds", spool, part.Rank{Index: rank, Size: 4})
				b.Close()
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
					return
				}
			}
		})
	}
	all.Wait()
}
